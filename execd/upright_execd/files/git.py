"""Git, as the program for files asks it: fixed words, no hooks, no helpers, bounded."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Final

from upright_execd.files.errors import FilesError

BOUND_S: Final = 60
_QUIET: Final = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def run(
    root: int, words: Sequence[str], *, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run git in the open folder *root*; it may fail.

    Raises:
        FilesError: there is no git, or it doesn't end in time.
    """
    program = shutil.which("git")
    if program is None:
        sentence = "There is no git on this machine."
        raise FilesError(sentence)
    os.fchdir(root)  # this very folder, whatever its name leads to by now
    try:
        return subprocess.run(  # noqa: S603  # our own words; what varies stands behind --
            [program, *_QUIET, *words],
            input=stdin,
            capture_output=True,
            timeout=BOUND_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        sentence = f"git did not end within {BOUND_S} s."
        raise FilesError(sentence) from error


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what git complained about."""
    return done.stderr.decode("utf-8", "replace").strip()[-2000:]


def tracked(root: int) -> list[str] | None:
    """Return the files that git tracks or would track, sorted; None: this is no repository."""
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    done = run(root, words)
    if done.returncode != 0:
        return None
    return sorted(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)
