"""Prices: US dollars a million tokens, as of a date; an unknown model costs None, never zero.

Source: the vendors' price pages, standard tier, read for the date below. Batch, regional and
long-prompt surcharges are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from types import MappingProxyType
from typing import Final

from upright.engine.ports import Usage

PRICES_AS_OF: Final = date(2026, 3, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars a million tokens, which is micro-dollars a token."""

    input: Decimal
    cached: Decimal
    output: Decimal


def _price(input_: str, cached: str, output: str) -> Price:
    return Price(input=Decimal(input_), cached=Decimal(cached), output=Decimal(output))


PRICES: Final[Mapping[str, Price]] = MappingProxyType(
    {
        "gpt-4.1": _price("2.00", "0.50", "8.00"),
        "gpt-4.1-mini": _price("0.40", "0.10", "1.60"),
        "gpt-4.1-nano": _price("0.10", "0.025", "0.40"),
        "gpt-4o": _price("2.50", "1.25", "10.00"),
        "gpt-4o-mini": _price("0.15", "0.075", "0.60"),
        "gpt-5": _price("1.25", "0.125", "10.00"),
        "gpt-5-mini": _price("0.25", "0.025", "2.00"),
        "gpt-5-nano": _price("0.05", "0.005", "0.40"),
        "gpt-5.1": _price("1.25", "0.125", "10.00"),
        "o3": _price("2.00", "0.50", "8.00"),
        "o4-mini": _price("1.10", "0.275", "4.40"),
        "scripted": _price("0", "0", "0"),  # our own server, see llm.scripted
    }
)
DATED: Final = re.compile(r"^(?P<name>.+?)-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """What models cost, as of a date; a person's own prices go before ours."""

    prices: Mapping[str, Price] = field(default_factory=lambda: PRICES)
    as_of: date = PRICES_AS_OF

    def under(self, own: Mapping[str, Price]) -> PriceList:
        """Return this list with somebody's own prices above it."""
        return PriceList(prices={**self.prices, **own}, as_of=self.as_of)

    def cost_usd_micros(self, model: str, usage: Usage) -> int | None:
        """Return what a call cost, rounded to a micro-dollar; None: the model has no price here.

        A dated snapshot (``gpt-4o-2024-08-06``) costs what its name without the date does.
        """
        dated = DATED.match(model)
        price = self.prices.get(model) or (self.prices.get(dated["name"]) if dated else None)
        if price is None:
            return None
        fresh = usage.input - usage.cached
        cost = price.input * fresh + price.cached * usage.cached + price.output * usage.output
        return int(cost.to_integral_value(rounding=ROUND_HALF_EVEN))


PRICE_LIST: Final = PriceList()
