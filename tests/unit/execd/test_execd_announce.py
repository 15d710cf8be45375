"""Announce: the owner's workspaces, and the tools that commands would find."""

from __future__ import annotations

from pathlib import Path

import pytest

from upright_execd import workspace
from upright_execd.announce import announced
from upright_wire.tools import TOOLS, heard, lacking


@pytest.mark.clause("E10.4")
def test_the_tools_that_commands_would_find_are_told_once(tmp_path: Path) -> None:
    for name, mode in (("npm", 0o755), ("zig", 0o644), ("own-program", 0o755)):
        (tmp_path / name).touch(mode)
    rows = []
    for name in ("one", "two"):
        (tmp_path / "src" / name).mkdir(parents=True)
        rows.append(workspace.add(tmp_path / "list.toml", tmp_path / "src" / name, None))
    told = announced(rows, {"PATH": str(tmp_path)})
    assert [heard(one.labels) for one in told] == [(("one",), ("npm",)), (("two",), ())]


@pytest.mark.clause("E10.4")
def test_only_programs_of_the_list_are_judged() -> None:
    used = {"/usr/bin/git", "make", "./own-program", "python3.11"}
    assert lacking(used, ("git",)) == ("make",)
    assert lacking(used, ("git", "make")) == ()
    assert heard(("work", "tool:make", "tool:own-program")) == (("work",), ("make",))
    assert len(set(TOOLS)) == len(TOOLS)
