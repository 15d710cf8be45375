"""Self-test: a process tries what its bounds forbid; what it can do all the same is a fault."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from upright_execd.asking import ask

_ROOT: Final = str(Path(__file__).parents[1])
BOUND_S: Final = 10.0
PROGRAM: Final = f"""
import os, socket, sys
sys.path.insert(0, {_ROOT!r})
from upright_execd.shim import landlock, seccomp
inside, outside, secret = sys.argv[1:]
landlock.restrict(landlock.ruleset([inside], ["/usr", "/lib", "/lib64"], []))
seccomp.restrict(seccomp.no_network())

def tried(what, act):
    try:
        act()
    except OSError:
        return
    print(what)

tried("writes outside its workspace", lambda: open(outside, "w"))
tried("reads what it may not", lambda: open(secret))
tried("reaches the internet", lambda: socket.socket(socket.AF_INET))
tried("reaches local sockets", lambda: socket.socket(socket.AF_UNIX))
open(inside + "/x", "w").close()
print("tried")
"""


def faults() -> list[str]:
    """Return what a process without network and secrets can do here that it must not.

    Blocks. One line says why, when the test itself can't be made.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        inside, secret = folder / "inside", folder / "secret"
        inside.mkdir()
        secret.write_text("x", encoding="ascii")
        argv = [sys.executable, "-I", "-S", "-E", "-c", PROGRAM]
        try:
            words = (str(inside), str(folder / "outside"), str(secret))
            done = ask([*argv, *words], within_s=BOUND_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            return [str(error)]
    said = done.stdout.decode().splitlines()
    if said[-1:] != ["tried"]:
        return (done.stderr.decode().strip().splitlines() or ["it ended early"])[-1:]
    return said[:-1]
