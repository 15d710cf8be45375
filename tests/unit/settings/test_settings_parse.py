"""Parse: the generic reader that connectors' settings go through, too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from upright.api import SecretRef
from upright.settings.errors import SettingsError
from upright.settings.parse import Place, Text, parse

PLACE = Place(key="sources.x", origin="some.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    token: SecretRef
    names: frozenset[str] = frozenset()
    rate: float | None = None
    loud: bool = False
    folder: Path = Path()
    pairs: tuple[tuple[str, str], ...] = ()


def test_optional_and_collected_fields_get_their_types() -> None:
    table = {"token": "env:T", "names": ["a", "a"], "rate": 1, "pairs": {"k": "v"}, "folder": "/x"}
    parsed = parse(Wanted, table, PLACE)
    assert parsed == Wanted(
        token=SecretRef("env:T"),
        names=frozenset({"a"}),
        rate=1.0,
        folder=Path("/x"),
        pairs=(("k", "v"),),
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "sources.x.token in some.toml: this key is missing"),
        ({"token": "env:T", "rat": 1}, "sources.x.rat in some.toml: there is no such key, did"),
        ({"token": "env:T", "rate": "1"}, "sources.x.rate in some.toml: must be a number"),
        ({"token": "env:T", "names": [1]}, "sources.x.names.0 in some.toml: must be text, not 1"),
        ({"token": "env:T", "pairs": {"k": 1}}, "sources.x.pairs.k in some.toml: must be text"),
        ({"token": "env:T", "names": {}}, "sources.x.names in some.toml: must be a list"),
        ({"token": 7}, "sources.x.token in some.toml: must be a reference"),
    ],
)
def test_each_wrong_value_is_named(table: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(Wanted, table, PLACE)
    assert str(caught.value).startswith(said)


def test_text_from_outside_is_read_as_the_type_of_its_field() -> None:
    def text(value: str) -> Text:
        return Text(text=value, origin="flag")

    table = {"token": text("env:T"), "loud": text("true"), "names": text("a, b"), "rate": text("2")}
    parsed = parse(Wanted, table, PLACE)
    assert (parsed.loud, parsed.names, parsed.rate) == (True, frozenset({"a", "b"}), 2.0)


def test_wrong_text_from_outside_is_named_with_its_origin() -> None:
    with pytest.raises(SettingsError, match=r"sources\.x.loud in flag: must be true or false"):
        parse(Wanted, {"token": "env:T", "loud": Text(text="maybe", origin="flag")}, PLACE)


def test_a_plugin_whose_settings_are_no_dataclass_is_called_broken() -> None:
    with pytest.raises(SettingsError, match="is broken"):
        parse(dict, {}, PLACE)
