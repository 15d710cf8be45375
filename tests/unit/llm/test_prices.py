"""What a call costs."""

from __future__ import annotations

from decimal import Decimal

import pytest

from upright.engine.ports import Usage
from upright.llm.prices import PRICE_LIST, PRICES, Price

MILLION = Usage(input=1_000_000, output=1_000_000)


@pytest.mark.parametrize(
    ("model", "usage", "micros"),
    [
        ("gpt-4o", MILLION, 12_500_000),
        ("gpt-4o-2024-08-06", MILLION, 12_500_000),
        ("gpt-4o", Usage(input=1_000_000, cached=1_000_000), 1_250_000),
        ("gpt-4o", Usage(input=100, cached=60, output=10), 275),
        ("gpt-5-nano", Usage(input=1, output=1), 0),
        ("scripted", MILLION, 0),
        ("gpt-4o-audio-preview", MILLION, None),
        ("qwen3:8b", MILLION, None),
        ("", MILLION, None),
    ],
)
@pytest.mark.clause("B16.1")
def test_a_known_model_has_a_cost_and_an_unknown_one_has_none(
    model: str, usage: Usage, micros: int | None
) -> None:
    assert PRICE_LIST.cost_usd_micros(model, usage) == micros


def test_what_comes_from_a_cache_never_costs_more() -> None:
    assert all(price.cached <= price.input <= price.output for price in PRICES.values())


@pytest.mark.clause("B16.1")
def test_a_persons_own_prices_go_before_ours_and_add_to_them() -> None:
    own = Price(input=Decimal("0.5"), cached=Decimal("0.1"), output=Decimal(2))
    prices = PRICE_LIST.under({"gpt-4o": own, "qwen3:8b": own})
    assert prices.cost_usd_micros("gpt-4o", MILLION) == 2_500_000
    assert prices.cost_usd_micros("qwen3:8b", MILLION) == 2_500_000
    assert prices.cost_usd_micros("gpt-4.1", MILLION) == 10_000_000
    assert prices.as_of == PRICE_LIST.as_of
