"""Reconcile: what was missed is listed on start, after each reconnect, and on a schedule."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from fixtures.plugins import Fake, FakeSettings, FixedClock, Recorded
from fixtures.still_hub import trigger
from upright.api import ConnectorNotReadyError, Destination, Effect, Trigger
from upright.core.connector import ConnectorState
from upright.plugin.life import Life, LifeParts
from upright.plugin.reconcile import BATCH, ReconcileParts, reconcile
from upright.store.errors import StoreUnavailableError

pytestmark = [pytest.mark.looptime, pytest.mark.clause("B2.3")]

EFFECT = Effect(
    id="ob_1",
    destination=Destination(source="room", kind="x", address=()),
    text="hello",
    idempotency_key="k",
)
AT = datetime(2025, 12, 31, 23, tzinfo=UTC)
EVERY_S = 300.0


def missed(count: int) -> list[Trigger | Exception]:
    return [replace(trigger(native=f"n{n}"), occurred_at=AT) for n in range(count)]


@dataclass
class Kept:
    """What was stored: (triggers, cursor, whole), one a call."""

    calls: list[tuple[int, str, bool]] = field(default_factory=list)
    fails: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def since(self, source: str) -> str | None:
        return self.calls[-1][1] if self.calls else None

    async def keep(
        self, source: str, triggers: Sequence[Trigger], until: str, *, whole: bool
    ) -> None:
        if self.fails:
            self.fails -= 1
            raise StoreUnavailableError("away")
        assert all(dict(one.context.facts).get("late") == "yes" for one in triggers)
        async with self.changed:
            self.calls.append((len(triggers), until, whole))
            self.changed.notify_all()

    async def until(self, calls: int) -> None:
        async with asyncio.timeout(10_000), self.changed:
            await self.changed.wait_for(lambda: len(self.calls) >= calls)


@asynccontextmanager
async def reconciling(fake: Fake, parts: LifeParts, kept: Kept) -> AsyncIterator[Life]:
    life = Life("room", fake.offered(), FakeSettings(), parts)
    mine = ReconcileParts(clock=FixedClock(), since=kept.since, keep=kept.keep, every_s=EVERY_S)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(life.run()), group.create_task(reconcile(life, mine))]
        try:
            yield life
        finally:
            for task in tasks:
                task.cancel()


@pytest.mark.case("AI/66")
async def test_what_was_missed_is_listed_on_start_and_on_the_schedule(parts: LifeParts) -> None:
    fake, kept = Fake(listings=[missed(2), missed(0)]), Kept()
    clock = asyncio.get_running_loop().time
    async with reconciling(fake, parts, kept):
        await kept.until(1)
        began = clock()
        await kept.until(2)
        assert EVERY_S - 1 <= clock() - began <= EVERY_S + 1
    until = "2026-01-01T00:00:00+00:00"
    assert kept.calls == [(2, until, True), (0, until, True)]
    assert fake.asked == [None, until]


async def test_a_long_listing_is_stored_in_batches_each_with_how_far_it_came(
    parts: LifeParts,
) -> None:
    fake, kept = Fake(listings=[missed(BATCH + 1)]), Kept()
    async with reconciling(fake, parts, kept):
        await kept.until(2)
    assert kept.calls == [
        (BATCH, "2025-12-31T23:00:00+00:00", False),
        (1, "2026-01-01T00:00:00+00:00", True),
    ]


@pytest.mark.parametrize("error", [ConnectorNotReadyError("a limit"), ValueError("broken")])
async def test_a_listing_that_fails_moves_the_sources_state_and_is_made_again_when_it_is_back(
    parts: LifeParts, recorded: Recorded, error: Exception
) -> None:
    fake, kept = Fake(listings=[[*missed(1), error], missed(3)]), Kept()
    async with reconciling(fake, parts, kept):
        await kept.until(1)
    states = recorded.states()
    bad = ConnectorState.BACKING_OFF if "limit" in str(error) else ConnectorState.FAILED
    assert bad.value in states
    assert kept.calls[0][0] == 3


async def test_what_could_not_be_stored_is_listed_again(parts: LifeParts) -> None:
    fake, kept = Fake(listings=[missed(3), missed(3)]), Kept(fails=1)
    async with reconciling(fake, parts, kept):
        await kept.until(1)
    assert fake.asked == [None, None]
    assert kept.calls[0][0] == 3


async def test_a_source_that_can_not_list_is_not_asked(parts: LifeParts) -> None:
    fake, kept = Fake(), Kept()
    async with reconciling(fake, parts, kept):
        await asyncio.sleep(3 * EVERY_S)
    assert (fake.asked, kept.calls) == ([], [])


async def test_it_is_listed_anew_when_it_was_away_and_is_back(parts: LifeParts) -> None:
    gone = ConnectorNotReadyError("gone")
    fake, kept = Fake(listings=[missed(1), missed(2)], sends=[gone]), Kept()
    async with reconciling(fake, parts, kept) as life:
        await kept.until(1)
        with pytest.raises(ConnectorNotReadyError):
            await life.send(EFFECT)
        await kept.until(2)
    assert [call[0] for call in kept.calls] == [1, 2]
