"""Locker: another process that holds SQLite's write lock for a while."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

from upright.cli.bench.errors import BenchError

SPARE_S: Final = 30.0
_HOLD: Final = """
import sqlite3, sys, time
path, how, seconds = sys.argv[1:]
connection = sqlite3.connect(path, timeout=20, isolation_level=None)
connection.execute(f"BEGIN {how}")
time.sleep(float(seconds))
connection.execute("ROLLBACK")
connection.close()
"""


async def locked(path: Path, how: str, seconds: float) -> None:
    """Hold the lock of *path* for some seconds: ``IMMEDIATE`` or ``EXCLUSIVE``.

    Raises:
        BenchError: the lock could not be had.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _HOLD, str(path), how, str(seconds)),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds + SPARE_S):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise BenchError(said.decode(errors="replace").strip())
