"""Git: which remotes a workspace has; asked of git itself, with a bound, never through a shell."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from upright_execd.asking import ask

_BOUND_S: Final = 5
_MAX_REMOTES: Final = 20
_CREDENTIALS: Final = re.compile(r"^(?P<scheme>[a-z+]+://)[^/@]*@")


def remotes(folder: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the addresses that *folder* fetches from, sorted, without user names or passwords.

    Not a repository, no git, or no answer in time: none. Blocks; call it in a thread.
    """
    clean = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    git = shutil.which("git", path=environment.get("PATH"))
    if git is None:
        return ()
    try:
        done = ask(
            [git, "-C", str(folder), "remote", "-v"],
            env=clean | {"GIT_OPTIONAL_LOCKS": "0"},
            within_s=_BOUND_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if done.returncode:
        return ()
    return parse(done.stdout.decode("utf-8", "replace"))


def parse(listing: str) -> tuple[str, ...]:
    """Read what ``git remote -v`` prints: ``name<TAB>address (fetch|push)``."""
    found: set[str] = set()
    for line in listing.splitlines():
        _, _, rest = line.partition("\t")
        address, _, purpose = rest.rpartition(" ")
        if purpose == "(fetch)" and address:
            found.add(_CREDENTIALS.sub(r"\g<scheme>", address))
    return tuple(sorted(found)[:_MAX_REMOTES])
