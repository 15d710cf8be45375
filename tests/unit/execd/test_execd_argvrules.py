"""Rules by real path and argv; a wrapper never matches, whatever it is called."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from upright_execd.argvrules import (
    WRAPPERS,
    ArgvRule,
    Call,
    add,
    allows,
    is_wrapper,
    listed,
    program,
)
from upright_execd.errors import DamagedError, SettingsError
from upright_execd.ownerfiles import read
from upright_execd.paths import paths_in
from upright_execd.settings import Mode
from upright_wire.spec import Confinement

CALL = Call(
    program="/usr/bin/git",
    argv=("git", "log", "-1"),
    cwd="/w",
    confinement=Confinement.NONE,
)
RULE = ArgvRule(program="/usr/bin/git", argv=("git", "log", "-1"))


@pytest.mark.clause("E8.3")
@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        (("git", "log", "-1"), True),
        (("git", "log", "*"), True),
        (("git", "**"), True),
        (("git", "log", "-1", "**"), True),
        (("git", "log"), False),
        (("git", "*"), False),
        (("git", "log", "-1", "*"), False),
        (("git", "log", "-2"), False),
        (("git", "log", "-1", "x", "**"), False),
    ],
)
def test_a_pattern_fits_word_by_word(pattern: tuple[str, ...], *, matches: bool) -> None:
    assert allows([replace(RULE, argv=pattern)], CALL) is matches


@pytest.mark.clause("E8.3")
@pytest.mark.parametrize(
    "other",
    [
        replace(CALL, program="/opt/git"),
        replace(CALL, program=""),
        replace(CALL, argv=("git", "log")),
        replace(CALL, argv=("env", "log", "-1")),
        replace(CALL, cwd="/elsewhere"),
        replace(CALL, confinement=Confinement.WORKSPACE),
        replace(CALL, has_env=True),
        replace(CALL, has_stdin=True),
    ],
)
def test_anything_else_is_not_let(other: Call) -> None:
    rule = replace(RULE, cwd="/w", confinement=Confinement.NONE)
    assert allows([rule], CALL)
    assert not allows([rule], other)


@pytest.mark.case("GC/1208")
@pytest.mark.clause("E8.3")
@pytest.mark.parametrize("name", sorted(WRAPPERS))
def test_a_wrapper_never_matches_even_if_a_rule_names_it(name: str) -> None:
    argv = (name, "-c", "evil")
    call = replace(CALL, program=f"/usr/bin/{name}", argv=argv)
    assert not allows([ArgvRule(program=f"/usr/bin/{name}", argv=argv)], call)


@pytest.mark.clause("E8.3")
@pytest.mark.parametrize(
    "name",
    ["python3.11", "python3", "perl5.36.0", "ruby-3.2", "/lib64/ld-linux-x86-64.so.2", "lua5.4"],
)
def test_a_version_does_not_hide_a_wrapper(name: str) -> None:
    assert is_wrapper(name)


@pytest.mark.parametrize("name", ["git", "ls", "pytest", "true", "pythonista", "envoy"])
def test_what_is_no_wrapper_is_none(name: str) -> None:
    assert not is_wrapper(name)


@pytest.mark.clause("E8.3")
def test_a_link_to_a_wrapper_is_one(tmp_path: Path) -> None:
    (tmp_path / "innocent").symlink_to("/usr/bin/env")
    folder = os.open(tmp_path, os.O_RDONLY)
    found = program("innocent", str(tmp_path), folder)
    assert is_wrapper(found)
    assert program("./innocent", "", folder) == found
    os.close(folder)


def test_a_program_is_found_as_it_will_be_run(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text("#!/bin/sh", encoding="ascii")
    (tmp_path / "b/tool").chmod(0o755)
    folder = os.open(tmp_path, os.O_RDONLY)
    path = f"{tmp_path}/a:{tmp_path}/b"
    assert program("tool", path, folder) == str(tmp_path / "b/tool")
    assert program("b/tool", "", folder) == str(tmp_path / "b/tool")
    assert program("b", str(tmp_path), folder) == ""
    assert program("none", path, folder) == ""
    os.close(folder)


def test_rules_come_back_and_stand_there_once(tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    rules = (RULE, replace(RULE, cwd="/w", confinement=Confinement.READ_ONLY))
    for rule in (*rules, *rules):
        add(file, rule)
    assert listed(file) == rules
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.clause("E8.3")
@pytest.mark.parametrize(
    "rule",
    [
        ArgvRule(program="/usr/bin/env", argv=("env", "**")),
        ArgvRule(program="/usr/bin/git", argv=("sh", "-c", "x")),
        ArgvRule(program="git", argv=("git",)),
        ArgvRule(program="/usr/bin/git", argv=()),
        ArgvRule(program="/usr/bin/git", argv=("*", "x")),
        ArgvRule(program="/usr/bin/git", argv=("git", "**", "x")),
    ],
)
def test_what_may_be_no_rule_is_refused_and_at_load_switches_the_mode_off(
    rule: ArgvRule, tmp_path: Path
) -> None:
    paths = paths_in(tmp_path)
    with pytest.raises(SettingsError, match="No rule may allow"):
        add(paths.rules, rule)
    row = {"program": rule.program, "argv": list(rule.argv)}
    paths.rules.write_text(json.dumps({"rules": [row]}), encoding="ascii")
    rules = read(paths)
    assert rules.settings.mode is Mode.OFF
    assert "No rule may allow" in rules.problem


@pytest.mark.parametrize("text", ["", "[]", '{"rules": [1]}', '{"rules": [{"argv": ["x"]}]}'])
def test_a_list_that_cannot_be_read_is_said_to_be_damaged(text: str, tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text(text, encoding="ascii")
    with pytest.raises(DamagedError):
        listed(tmp_path / "rules.json")
