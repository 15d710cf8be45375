"""How to write a connector: what the page says is what there is."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final

import pytest

import upright.api
from upright.plugin.connectors import problems
from upright.plugin.manifest import listed
from upright.settings.load import environment
from upright.settings.shape import SourceSection
from upright.testing.context import MemoryContext
from upright.testing.outside import Outside

PAGE: Final = (Path(__file__).parents[2] / "docs/howto/plugin.md").read_text(encoding="utf-8")

FROM_THE_DOOR: Final = re.compile(r"^from upright\.api import ([^(\n]+|\([^)]+\))", re.MULTILINE)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_block_of_python_compiles_and_every_one_of_toml_is_read() -> None:
    for block in blocks("python"):
        assert ast.parse(block).body
    for block in blocks("toml"):
        assert tomllib.loads(block)
    assert len(blocks("python")) >= 3


def test_every_name_that_is_taken_from_the_door_is_there() -> None:
    taken = {
        name.strip()
        for block in blocks("python")
        for names in re.findall(
            r"^from upright\.api import ([^(\n]+|\([^)]+\))", block, re.MULTILINE
        )
        for name in names.strip("()").split(",")
        if name.strip()
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


@pytest.mark.timeout(120)  # another pytest runs, on a machine that may be busy
def test_the_connector_of_the_page_keeps_the_contract_as_it_stands_there(tmp_path: Path) -> None:
    for block in [*blocks("python"), *blocks("toml")]:
        named = re.match(r"# ([\w./-]+\.(?:py|toml))", block)
        assert named, block
        path = tmp_path / named[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "-c", "/dev/null", "tests"],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout
    assert passed is not None
    assert int(passed[1]) >= 20


def test_the_plugin_of_the_page_is_found_by_its_manifest_and_its_settings_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for block in [*blocks("python"), *blocks("toml")]:
        named = re.match(r"# (upright_bell/[\w.-]+)", block)
        if named:
            (tmp_path / "upright_bell").mkdir(exist_ok=True)
            (tmp_path / named[1]).write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint(name="bell", value="upright_bell", group="upright")
    plugins = listed([entry])
    good = SourceSection(connector="bell", keys={"secret": "keyring:bell"})
    bad = SourceSection(connector="bell", keys={"secrt": "keyring:bell"})
    said = problems({"good": good, "bad": bad}, plugins, file="upright.toml")
    assert list(said) == ["bad"]
    assert 'did you mean "secret"?' in said["bad"]
