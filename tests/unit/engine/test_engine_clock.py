"""Clock and ids of a running hub."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from fixtures.still_hub import START, START_MS, StillClock
from upright.core.ids import PREFIXES, kind_of
from upright.engine.clock import SortableIds, SystemClock, now_ms


def test_ids_sort_by_the_time_of_their_making() -> None:
    clock = StillClock()
    ids = SortableIds(clock)
    made = []
    for seconds in (0, 0.001, 1, 60, 86_400, 10 * 365 * 86_400):
        clock.at = START + timedelta(seconds=seconds)
        made.append(ids.new("trigger"))
    assert sorted(made) == made


@pytest.mark.parametrize("kind", sorted(PREFIXES))
def test_an_id_names_its_kind_and_has_26_letters_without_look_alikes(kind: str) -> None:
    made = SortableIds(StillClock()).new(kind)
    prefix, _, rest = made.partition("_")
    assert (prefix, kind_of(made), len(rest)) == (PREFIXES[kind], kind, 26)
    assert not set(rest) & set("ilou")
    assert rest == rest.lower()


def test_ids_of_one_moment_differ_in_all_but_the_time() -> None:
    ids = SortableIds(StillClock())
    made = {ids.new("job") for _ in range(10_000)}
    assert len(made) == 10_000
    assert len({one[: len("jb_") + 9] for one in made}) == 1


def test_a_kind_that_is_not_listed_has_no_ids() -> None:
    with pytest.raises(KeyError):
        SortableIds(StillClock()).new("ghost")


def test_epoch_milliseconds_are_of_the_wall_clock() -> None:
    assert now_ms(StillClock()) == START_MS
    assert now_ms(StillClock(at=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))) == 1000


@pytest.mark.looptime
async def test_the_machines_clock_is_aware_and_its_sleep_is_the_loops() -> None:
    clock = SystemClock()
    began = asyncio.get_running_loop().time()
    await clock.sleep(3600)
    assert asyncio.get_running_loop().time() - began == 3600
    assert clock.now().tzinfo is UTC
    assert clock.monotonic() <= clock.monotonic()
