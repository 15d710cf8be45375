"""Asking: runs a program of this machine for what it says; with a bound, and never by a shell."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def ask(
    argv: Sequence[str],
    *,
    within_s: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Return what *argv* said, in a session of its own and without input. Blocks.

    The callers' words are their own; nothing that came over the link is among them.

    Raises:
        OSError: it can't be started.
        subprocess.TimeoutExpired: it took too long; it was killed.
    """
    return subprocess.run(  # noqa: S603  # each caller's argv is its own, with a fixed first word
        argv,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=within_s,
        check=False,
        start_new_session=True,
    )
