"""Announce: the owner's workspaces as the hub is told of them."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from upright_execd import git
from upright_execd.workspace import Workspace, is_in_place
from upright_wire import frames, tools

FILES: Final = (sys.executable, "-I", "-S", str(Path(__file__).with_name("files") / "run.py"))
"""How the hub runs the program for files here: by argv, as any other command."""


def announced(
    rows: Iterable[Workspace], environment: Mapping[str, str]
) -> tuple[frames.Workspace, ...]:
    """Return the workspaces that are where they were listed, each with its git remotes.

    The first says as well which tools this machine has. Blocks for as long as git takes; call it
    in a thread.
    """
    there = [row for row in rows if is_in_place(row)]
    return tuple(
        frames.Workspace(
            path=str(row.path),
            remotes=git.remotes(row.path, environment),
            labels=(row.label, *(_tools(environment) if row is there[0] else ())),
            owner=pwd.getpwuid(os.getuid()).pw_name,
        )
        for row in there
    )


def _tools(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the labels for the tools that commands would find here."""
    path = environment.get("PATH", os.defpath)
    return tools.told(name for name in tools.TOOLS if shutil.which(name, path=path))
