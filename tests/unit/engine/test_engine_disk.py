"""Disk: with too little room nothing new is taken in, and with room again everything is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from upright.engine.clock import SystemClock
from upright.engine.disk import Disk, DiskParts, free_bytes
from upright.store.errors import DiskFullError, StoreUnavailableError

MIB = 1024**2


def disk(free: Callable[[], int], told: list[str]) -> Disk:
    return Disk(
        DiskParts(
            folder=Path("/srv/upright"),
            least_bytes=256 * MIB,
            every_s=1.0,
            clock=SystemClock(),
            filling=lambda: told.append("filling"),
            free=lambda _: free(),
        )
    )


async def test_a_full_disk_refuses_with_one_sentence_and_recovers_when_there_is_room() -> None:
    sizes, told = iter([300 * MIB, 255 * MIB, 10 * MIB, 256 * MIB]), list[str]()
    one = disk(lambda: next(sizes), told)
    await one.look()
    one.require_room()
    await one.look()
    with pytest.raises(DiskFullError, match="only 255 MiB are free at /srv/upright"):
        one.require_room()
    await one.look()
    assert (one.full, told) == (True, ["filling"])  # the pruner is told once
    await one.look()
    one.require_room()
    assert not one.full


def test_nothing_is_refused_before_the_first_look() -> None:
    disk(lambda: 0, []).require_room()


def test_a_full_disk_is_answered_like_a_database_that_is_away() -> None:
    assert issubclass(DiskFullError, StoreUnavailableError)


@pytest.mark.may_block
def test_the_real_disk_has_some_room(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) > 0
