"""Budgets, costs and the model on the command line, through the hub's API over a real store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures.cli_hub import Served, Terminal
from fixtures.scripted_server import Endless, scripted
from upright.cli.errors import Exit
from upright.store.budgets import spend
from upright.store.ledger import Cost


@pytest.mark.clause("B16.2")
def test_a_budget_is_set_listed_and_cleared(served: Served, upright: Terminal) -> None:
    assert "the day" in upright("budget", "set", "day", "--tokens", "500", "--usd", "0.5").out
    rows = upright("budget", "ls", "--json").json()
    assert [(row["scope"], row["measure"], row["cap"]) for row in rows] == [
        ("day", "tokens", 500),
        ("day", "usd_micros", 500_000),
    ]
    assert "500 tokens" in upright("budget", "ls").out
    assert upright("budget", "clear", "day").code == 0
    assert upright("budget", "ls", "--json").json() == []


@pytest.mark.clause("B16.2")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["set", "day"], Exit.USAGE),  # how much?
        (["set", "week", "--usd", "1"], Exit.USAGE),
        (["set", "turn", "--usd", "1"], Exit.USAGE),  # that is for the configuration
        (["set", "item", "wk_fix", "--steps", "-1"], Exit.USAGE),
        (["set", "item", "wk_fix", "--steps", "9"], Exit.OK),
    ],
)
def test_what_is_no_budget_is_wrong_usage(
    served: Served, upright: Terminal, words: list[str], code: Exit
) -> None:
    typed = upright("budget", *words)
    assert typed.code == code
    assert "Traceback" not in typed.err


@pytest.mark.clause("B16.2")
@pytest.mark.parametrize(("tokens", "verdict"), [(300, None), (400, "note"), (500, "failed")])
def test_doctor_says_what_is_nearly_used_up(
    served: Served, upright: Terminal, tokens: int, verdict: str | None
) -> None:
    upright("budget", "set", "day", "--tokens", "500")
    cost = Cost(kind="model", session_id="se_fix", work_id="wk_fix", tokens_input=tokens)
    served.call(served.behind.units.write(lambda u: spend(u, cost)))
    found = {row["id"]: row for row in upright("doctor", "--json").json()["checks"]}
    told = found.get("budget day", {"verdict": None, "said": f"{tokens} tokens of 500 tokens"})
    assert told["verdict"] == verdict
    assert f"{tokens} tokens of 500 tokens" in told["said"]


@pytest.mark.case("OC/24636")
@pytest.mark.clause("B16.2")
@pytest.mark.parametrize(
    ("facet", "name"),
    [
        ("source", "-"),
        ("policy", "-"),
        ("item", "wk_fix"),
        ("session", "se_fix"),
        ("agent", "-"),
        ("model", "m"),
        ("day", "1970-01-01"),
    ],
)
def test_costs_are_added_up_by_whatever_is_named(
    served: Served, upright: Terminal, facet: str, name: str
) -> None:
    shown = upright("cost", "--by", facet)
    assert shown.code == 0, shown.err
    assert name in shown.out
    found = upright("cost", "--by", facet, "--json").json()
    assert sum(row["calls"] for row in found["rows"]) == 3
    assert upright("cost", "--by", facet, "--days", "1", "--json").json()["rows"] == []


@pytest.mark.clause("B16.2")
def test_a_forecast_of_an_unknown_source_says_that_there_is_nothing_to_go_by(
    served: Served, upright: Terminal
) -> None:
    assert "nothing to go by" in upright("cost", "--forecast", "github").out
    assert upright("cost", "--forecast", "github", "--json").json()["days"] == 0


# ------------------------------------------------------------------ the model
@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endless]:
    with scripted(lacks=("tools",)) as running:
        yield running


def test_any_endpoint_is_probed_by_one_command_without_a_hub(
    upright: Terminal, endpoint: Endless
) -> None:
    typed = upright("model", "probe", "--url", endpoint.url, "--name", "any")
    assert typed.code == 0, typed.err
    assert "✓ streaming" in typed.out
    assert "✗ tools" in typed.out
    assert "no tools: the model can neither route nor work" in typed.out
    found = upright("model", "probe", "--url", endpoint.url, "--name", "any", "--json").json()
    assert (found["can"]["tools"], found["can"]["schema"]) == (False, True)


def test_an_endpoint_that_is_away_is_one_sentence(
    upright: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPRIGHT_MODEL_TRIES", "1")
    typed = upright("model", "probe", "--url", "http://127.0.0.1:9/v1", "--name", "any")
    assert typed.code == Exit.FAILED
    assert "can't be used" in typed.err
    assert "Traceback" not in typed.err


def test_without_a_model_there_is_nothing_to_probe(served: Served, upright: Terminal) -> None:
    assert upright("model", "probe").code != 0
    assert upright("model", "ls").code == 0
    assert upright("model", "retry", "--json").json()["retried"] is True
