"""``[budgets]``, ``[prices]`` and the roles of ``[model]``."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from upright.compose.given import agent_limits
from upright.compose.mind import prices_of
from upright.core.budget import Key, Measure, Scope
from upright.engine.ports import Usage
from upright.settings.errors import SettingsError
from upright.settings.load import load
from upright.settings.shape import Settings

FILE = """
[model]
base_url = "http://127.0.0.1:9/v1"
name = "strong"
[model.router]
name = "small"
[model.advisor]
name = "tiny"
base_url = "http://127.0.0.1:8/v1"
api_key = "env:TINY"

[budgets]
warn_percent = 50
[budgets.day]
usd = 2.5
[budgets.source]
tokens = 1000
[budgets.turn]
steps = 7
seconds = 60
[budgets.sources.github]
tokens = 5000
[budgets.policies."red CI"]
usd = 1
[budgets.agents.developer]
retries = 3

[prices."my-model"]
input = 0.25
output = 2.0
"""


def read(tmp_path: Path, text: str, **env: str) -> Settings:
    file = tmp_path / "upright.toml"
    file.write_text(text, encoding="utf-8")
    return load({"UPRIGHT_HOME": str(tmp_path), **env}, file=file)


@pytest.mark.clause("B16.2")
def test_budgets_become_caps_of_each_and_of_those_that_are_named(tmp_path: Path) -> None:
    caps = read(tmp_path, FILE).terms().caps
    assert caps.warn_percent == 50
    assert caps.of(Key(Scope.DAY)) == {Measure.USD_MICROS: 2_500_000}
    assert caps.of(Key(Scope.SOURCE, "mail")) == {Measure.TOKENS: 1000}
    assert caps.of(Key(Scope.SOURCE, "github")) == {Measure.TOKENS: 5000}
    assert caps.of(Key(Scope.POLICY, "red CI")) == {Measure.USD_MICROS: 1_000_000}
    assert caps.of(Key(Scope.AGENT, "developer")) == {Measure.RETRIES: 3}


@pytest.mark.clause("B13.1")
def test_a_turns_budget_bounds_its_agents(tmp_path: Path) -> None:
    settings = read(tmp_path, FILE)
    limits = agent_limits(settings.limits, settings.budgets)
    assert limits.turn.caps == {Measure.STEPS: 7, Measure.MILLIS: 60_000}


@pytest.mark.clause("B13.1")
def test_without_a_word_items_and_turns_are_bounded_and_money_is_not(tmp_path: Path) -> None:
    settings = read(tmp_path, "")
    caps = settings.terms().caps
    assert set(caps.of(Key(Scope.ITEM, "wk"))) == {
        Measure.STEPS,
        Measure.RETRIES,
        Measure.REPEATS,
    }
    assert set(settings.budgets.turn.amounts()) == {
        Measure.MILLIS,
        Measure.RETRIES,
        Measure.REPEATS,
    }
    assert caps.of(Key(Scope.DAY)) == {}


@pytest.mark.clause("B16.1")
def test_a_price_of_ones_own_is_counted_with(tmp_path: Path) -> None:
    settings = read(tmp_path, FILE)
    million = Usage(input=1_000_000, cached=1_000_000, output=1_000_000)
    assert prices_of(settings).cost_usd_micros("my-model", million) == 2_250_000
    assert settings.prices["my-model"].dollars() == (
        Decimal("0.25"),
        Decimal("0.25"),
        Decimal("2.0"),
    )


@pytest.mark.clause("B17.4")
def test_a_role_may_have_a_model_and_an_endpoint_of_its_own(tmp_path: Path) -> None:
    section = read(tmp_path, FILE, UPRIGHT_MODEL_WORKER_NAME="other").model
    assert section.names() == {"router": "small", "worker": "other", "advisor": "tiny"}
    assert section.roles()["advisor"].base_url == "http://127.0.0.1:8/v1"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[budgets]\nwarn_percent = 0", "budgets"),
        ("[budgets.day]\nusd = -1", "budgets.day"),
        ("[budgets.day]\ndollars = 1", "budgets.day.dollars"),
        ('[prices."m"]\ninput = 1', "prices.m.output"),
        ('[prices."m"]\ninput = -1\noutput = 1', "prices.m"),
        ('[model.router]\nbase_url = "http://h/v1"', "model.router"),
        ('[model.router]\nname = "m"\nbase_url = "h"', "model.router"),
        ('[model.router]\nname = "m"\napi_key = "env:A"', "model.router"),
    ],
)
def test_what_is_wrong_names_its_key(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(SettingsError, match=key.replace(".", r"\.")):
        read(tmp_path, text)


def test_the_environment_sets_budgets_and_roles(tmp_path: Path) -> None:
    env = {"UPRIGHT_BUDGETS_DAY_USD": "3.5", "UPRIGHT_BUDGETS_WARN_PERCENT": "90"}
    settings = read(tmp_path, "", **env)
    assert (settings.budgets.day.usd, settings.budgets.warn_percent) == (3.5, 90)
