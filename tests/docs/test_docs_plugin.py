"""How to write a connector: what the page says is what there is."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from typing import Final

import upright.api
from upright.testing.context import MemoryContext
from upright.testing.outside import Outside

PAGE: Final = (Path(__file__).parents[2] / "docs/howto/plugin.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_block_of_python_compiles_and_every_one_of_toml_is_read() -> None:
    for block in blocks("python"):
        compile(block, "plugin.md", "exec")
    for block in blocks("toml"):
        assert tomllib.loads(block)
    assert len(blocks("python")) >= 3


def test_every_name_that_is_taken_from_the_door_is_there() -> None:
    taken = {
        name.strip()
        for block in blocks("python")
        for names in re.findall(r"^from upright\.api import (.+?)(?:  #.*)?$", block, re.MULTILINE)
        for name in names.split(",")
    }
    assert taken
    assert taken <= set(upright.api.__all__)
    errors = set(re.findall(r"`(\w+Error)\(", PAGE))
    assert len(errors) == 6
    assert errors <= set(upright.api.__all__)


def test_every_hook_of_the_contract_and_the_contexts_methods_are_named() -> None:
    hooks = [
        name
        for name, _ in inspect.getmembers(Outside, inspect.isfunction)
        if not name.startswith("_") and name not in {"connector", "say", "settled"}
    ]
    assert [name for name in hooks if f"`{name}`" not in PAGE] == []
    for called in re.findall(r"context\.(\w+)\(", PAGE):
        assert hasattr(MemoryContext, called), called


def test_every_method_of_a_connector_is_in_the_table() -> None:
    methods = [
        name
        for name, _ in inspect.getmembers(upright.api.Connector, inspect.isfunction)
        if not name.startswith("_")
    ]
    assert [name for name in methods if f"`{name}(" not in PAGE] == []
