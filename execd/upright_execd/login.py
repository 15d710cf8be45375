"""Login: the environment of the owner's login shell, which is what a command would have by hand.

A daemon that a service starts sees little of it: no PATH of brew, nvm or pyenv, no locale. It is
asked for when the daemon starts, kept in memory, and written nowhere: it may hold secrets.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from upright_execd.asking import ask

BOUND_S: Final = 10.0
MARK: Final = "upright-execd-environment"
CAPTURE_VARIABLE: Final = "UPRIGHT_EXECD_CAPTURE"
"""Set while the shell is asked, so that a start-up file can leave out what is for people."""
_KNOWN: Final = frozenset({"bash", "dash", "ksh", "mksh", "sh", "zsh", "fish"})
_PASSED: Final = ("LANG", "XDG_RUNTIME_DIR", "TZ", "TMPDIR")
_OF_THE_SHELL: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "TERM", CAPTURE_VARIABLE})
_SCRIPT: Final = f"printf '\\0%s\\0' {MARK}; exec env -0"


def capture(own: Mapping[str, str]) -> dict[str, str] | None:
    """Return what the login shell of this user exports; None: it says nothing we understand.

    *own* is the daemon's environment: its locale and run-time folder are handed on, nothing else.
    Blocks, for ten seconds at most.
    """
    user = pwd.getpwuid(os.getuid())
    if Path(user.pw_shell).name not in _KNOWN or not os.access(user.pw_shell, os.X_OK):
        return None
    given = {name: own[name] for name in _PASSED if name in own}
    given |= {
        "HOME": user.pw_dir,
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        "SHELL": user.pw_shell,
        "PATH": os.defpath,
        "TERM": "dumb",
        CAPTURE_VARIABLE: "1",
    }
    for options in (["-i", "-l"], ["-l"]):
        found = _asked([user.pw_shell, *options, "-c", _SCRIPT], given, user.pw_dir)
        if found is not None:
            return found
    return None


def parse(said: bytes) -> dict[str, str] | None:
    """Read what the shell printed: whatever its start-up files say comes before the mark."""
    _, mark, listing = said.partition(f"\0{MARK}\0".encode())
    if not mark or not listing:
        return None
    pairs = (word.partition(b"=") for word in listing.split(b"\0") if b"=" in word)
    found = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    return {name: value for name, value in found.items() if name not in _OF_THE_SHELL}


def _asked(argv: list[str], env: Mapping[str, str], home: str) -> dict[str, str] | None:
    where = Path(home) if Path(home).is_dir() else Path("/")
    try:
        done = ask(argv, env=env, cwd=where, within_s=BOUND_S / 2)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse(done.stdout)
