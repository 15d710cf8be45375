"""Whole: looks at what a killed hub left behind, in a copy: recovering it is the hub's own part."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from upright.cli.bench.siege.findings import Findings
from upright.store import audit, trail
from upright.store.address import Address
from upright.store.errors import StoreUnavailableError
from upright.store.outsider import look
from upright.store.unit import Connection


async def check(where: Address, scratch: Path, findings: Findings) -> None:
    """Check the database as it stands, and count where the hub was: in a turn, in a send."""
    target = where
    if isinstance(where, Path):
        target = await asyncio.to_thread(_copied, where, scratch)
    try:
        wrong, leased, sending = await look(target, _look)
    except StoreUnavailableError as error:
        findings.broken.append(f"the database can't be read: {error}")
        return
    findings.whole += 1
    findings.broken += wrong
    findings.inside_turn += leased
    findings.sending += sending


def _look(c: Connection) -> tuple[list[str], bool, bool]:
    return audit.whole(c), trail.is_leased(c), audit.is_sending(c)


def _copied(where: Path, scratch: Path) -> Path:
    """Copy the file with its log; the index of the log is made anew by whoever opens it."""
    scratch.mkdir(exist_ok=True)
    target = scratch / where.name
    for suffix in ("-shm", "-wal", ""):
        (scratch / f"{where.name}{suffix}").unlink(missing_ok=True)
    for suffix in ("", "-wal"):
        file = where.with_name(f"{where.name}{suffix}")
        if file.exists():
            shutil.copyfile(file, scratch / file.name)
    return target
