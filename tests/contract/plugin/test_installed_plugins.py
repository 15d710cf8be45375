"""Installed plugins: each keeps what its manifest says, through the door that strangers use."""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib.metadata import EntryPoint

import click
import pytest

from upright.plugin.connectors import problems
from upright.plugin.loading import Door
from upright.plugin.manifest import installed, listed, read
from upright.settings.shape import SourceSection

each = pytest.mark.parametrize("entry", installed(), ids=lambda entry: entry.name)


@each
def test_it_offers_the_kinds_of_its_manifest(entry: EntryPoint) -> None:
    kinds = read(entry).kinds
    loaded = Door().connectors(listed([entry]), kinds)
    assert not loaded.failures
    assert set(loaded.types) == set(kinds)
    for offered in loaded.types.values():
        assert is_dataclass(offered.settings)
        assert vars(offered.settings)["__dataclass_params__"].frozen
        assert offered.summary


@each
def test_it_adds_the_commands_of_its_manifest(entry: EntryPoint) -> None:
    (plugin,) = listed([entry])
    group = click.Group("sandbox")
    Door().add_commands(plugin, group)
    assert {f"sandbox {name}" for name in group.commands} == set(read(entry).commands)


@each
@pytest.mark.feature("common.settings")
def test_a_misspelt_key_of_a_source_is_named_with_the_nearest(entry: EntryPoint) -> None:
    for kind in read(entry).kinds:
        source = SourceSection(connector=kind, keys={"secrett": "env:X"})
        said = problems({"mine": source}, listed([entry]), file="upright.toml")
        assert said["mine"].startswith("sources.mine.secrett in upright.toml: there is no such key")
