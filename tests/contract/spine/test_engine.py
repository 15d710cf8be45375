"""The embedded engine and the timers over a real store: who runs next, and what fires (A6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest

from fixtures.still_hub import START_MS, StillHub
from upright.core.ids import SessionId
from upright.core.mandate import Trust
from upright.core.wait import WaitKind
from upright.engine.embedded import EmbeddedEngine, EngineLimits
from upright.engine.ports import Lease
from upright.engine.signals import Signals
from upright.engine.timers import SOON_S, Timers
from upright.store import intake, sessions, waits
from upright.store.errors import StoreUnavailableError
from upright.store.sessions import Claim
from upright.store.tables import SESSION
from upright.store.unit import Unit

LIMITS = EngineLimits(turns=2, lease_s=30.0, sweep_s=30.0, drain_s=5.0)


async def ready(hub: StillHub) -> SessionId:
    """Make a session that is ready."""

    def unit(u: Unit) -> SessionId:
        made = sessions.create(u, kind="worker", agent="worker", work=None, trust=Trust.MEMBER)
        sessions.wake(u, made)
        return made

    return await hub.do(unit)


class Turns:
    """Handles leases as a turn runner does; ``hold`` keeps a turn from ending."""

    def __init__(self, hub: StillHub) -> None:
        self.hub = hub
        self.leases: list[Lease] = []
        self.ended: list[Lease] = []
        self.cancelled: list[Lease] = []
        self.news = asyncio.Event()
        self.hold = asyncio.Event()
        self.hold.set()
        self.fails: list[Exception] = []

    async def __call__(self, lease: Lease) -> None:
        self.leases.append(lease)
        self.news.set()
        try:
            await self.hold.wait()
        except asyncio.CancelledError:
            self.cancelled.append(lease)
            self.news.set()
            raise
        if self.fails:
            raise self.fails.pop(0)
        claim = Claim(session=lease.session, epoch=lease.epoch)
        await self.hub.do(lambda u: sessions.finish(u, claim, retry_at_ms=None, end=False))
        self.ended.append(lease)
        self.news.set()

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not true():
                await self.news.wait()
                self.news.clear()


@asynccontextmanager
async def engine(
    hub: StillHub, turns: Callable[[Lease], Awaitable[None]], limits: EngineLimits = LIMITS
) -> AsyncIterator[EmbeddedEngine]:
    """Run an engine; it is drained at the end."""
    made = EmbeddedEngine(hub.units, limits, lambda: 0.5, Signals())
    async with asyncio.TaskGroup() as group:
        group.create_task(made.run(turns))
        try:
            yield made
        finally:
            made.drain()


@pytest.mark.clause("B8.5")
async def test_what_is_ready_is_run_under_a_lease_of_its_own(hub: StillHub) -> None:
    made = {await ready(hub), await ready(hub)}
    turns = Turns(hub)
    async with engine(hub, turns):
        await turns.until(lambda: len(turns.ended) == 2)
    assert {lease.session for lease in turns.leases} == made
    assert {lease.epoch for lease in turns.leases} == {1}
    assert await hub.claim() == []


async def test_a_hint_brings_what_became_ready_meanwhile(hub: StillHub) -> None:
    turns = Turns(hub)
    async with engine(hub, turns) as made:
        made.hint([await ready(hub)])
        await turns.until(lambda: turns.ended)


async def test_no_more_turns_run_at_once_than_allowed_and_none_is_left_out(hub: StillHub) -> None:
    for _ in range(5):
        await ready(hub)
    turns = Turns(hub)
    turns.hold.clear()
    async with engine(hub, turns) as made:
        await turns.until(lambda: len(turns.leases) == 2)
        made.hint([SessionId("se_x")])
        await hub.do(lambda u: None)
        assert len(turns.leases) == 2
        turns.hold.set()
        await turns.until(lambda: len(turns.ended) == 5)
    assert len({lease.session for lease in turns.leases}) == 5


@pytest.mark.clause("B8.6")
@pytest.mark.case("HE/35202", "HO/2486")
async def test_a_turn_that_fails_is_tried_again_later_and_later(hub: StillHub) -> None:
    session = await ready(hub)
    turns = Turns(hub)
    turns.fails = [RuntimeError("broken"), RuntimeError("broken")]
    async with engine(hub, turns) as made:
        for failures, pause_ms in ((1, 1000), (2, 2000)):
            await hub.until(partial(failed, hub, failures))
            row = await hub.row(SESSION)
            now = int(hub.clock.now().timestamp() * 1000)
            assert row["ready_at_ms"] - now == pause_ms
            hub.clock.go_on(pause_ms / 1000)
            made.hint([session])
        await turns.until(lambda: turns.ended)
    assert [lease.epoch for lease in turns.leases] == [1, 2, 3]


async def failed(hub: StillHub, times: int) -> bool:
    """Say whether the session's turns failed so often."""
    row = await hub.row(SESSION)
    return (row["failures"], row["lease_until_ms"]) == (times, None)


@pytest.mark.clause("B8.6")
@pytest.mark.case("DB/761")
async def test_a_turn_that_the_database_failed_is_tried_again_soon_each_time(
    hub: StillHub,
) -> None:
    session = await ready(hub)
    turns, times = Turns(hub), 6
    turns.fails = [StoreUnavailableError("it was away") for _ in range(times)]
    async with engine(hub, turns) as made:
        for epoch in range(1, times + 1):
            await hub.until(partial(back_in_the_queue, hub, epoch))
            row = await hub.row(SESSION)
            now = int(hub.clock.now().timestamp() * 1000)
            assert (row["failures"], row["ready_at_ms"] - now) == (0, 1000)
            hub.clock.go_on(1.0)
            made.hint([session])
        await turns.until(lambda: turns.ended)


async def back_in_the_queue(hub: StillHub, epoch: int) -> bool:
    """Say whether the session was led under this epoch, and was given back."""
    row = await hub.row(SESSION)
    return (row["lease_epoch"], row["lease_until_ms"]) == (epoch, None)


@pytest.mark.clause("B8.5")
async def test_a_lease_is_renewed_while_its_turn_runs(hub: StillHub) -> None:
    await ready(hub)
    turns = Turns(hub)
    turns.hold.clear()
    async with engine(hub, turns, replace(LIMITS, lease_s=0.03)):
        await turns.until(lambda: turns.leases)
        hub.clock.go_on(20)
        await hub.until(lambda: leased_until(hub, START_MS + 20_000))
        turns.hold.set()
        await turns.until(lambda: turns.ended)
    assert len(turns.leases) == 1


async def leased_until(hub: StillHub, at_ms: int) -> bool:
    return bool(((await hub.row(SESSION))["lease_until_ms"] or 0) >= at_ms)


@pytest.mark.clause("B8.5")
async def test_a_turn_whose_lease_is_lost_is_cancelled(hub: StillHub) -> None:
    await ready(hub)
    turns = Turns(hub)
    turns.hold.clear()
    async with engine(hub, turns, replace(LIMITS, lease_s=0.03)) as made:
        await turns.until(lambda: turns.leases)
        taken = SESSION.update().values(lease_epoch=9, lease_until_ms=START_MS + 10**9)
        await hub.do(lambda u: u.c.execute(taken).rowcount)
        async with asyncio.timeout(10):
            while made._running:
                hub.commit.clear()
                await hub.commit.wait()
    assert turns.ended == []
    assert (await hub.row(SESSION))["lease_epoch"] == 9


@pytest.mark.clause("B8.5")
async def test_a_session_whose_lease_ran_out_here_is_led_by_its_newest_turn_alone(
    hub: StillHub,
) -> None:
    await ready(hub)
    turns = Turns(hub)
    turns.hold.clear()
    async with engine(hub, turns) as made:
        await turns.until(lambda: turns.leases)
        hub.clock.go_on(31)
        made.hint([turns.leases[0].session])
        await turns.until(lambda: turns.cancelled)
        await turns.until(lambda: len(turns.leases) == 2)
        assert [claim.epoch for claim, _ in made._running.values()] == [2]
        turns.hold.set()
        await turns.until(lambda: turns.ended)
    assert [lease.epoch for lease in turns.cancelled] == [1]
    assert [lease.epoch for lease in turns.ended] == [2]


@pytest.mark.clause("B8.6")
async def test_draining_lets_a_turn_end_and_claims_nothing_more(hub: StillHub) -> None:
    await ready(hub)
    turns = Turns(hub)
    turns.hold.clear()
    async with engine(hub, turns) as made:
        await turns.until(lambda: turns.leases)
        made.drain()
        assert made.draining
        await ready(hub)
        turns.hold.set()
    assert len(turns.ended) == len(turns.leases) == 1


@pytest.mark.clause("B8.6")
async def test_a_turn_that_does_not_end_in_time_is_cancelled_and_its_session_stays_queued(
    hub: StillHub,
) -> None:
    session = await ready(hub)
    turns = Turns(hub)
    turns.hold.clear()
    async with engine(hub, turns, replace(LIMITS, drain_s=0.01)):
        await turns.until(lambda: turns.leases)
    assert turns.ended == []
    row = await hub.row(SESSION, id=session)
    assert row["ready_at_ms"] is not None
    await hub.do(lambda u: sessions.free_all(u.c))
    assert [claim.session for claim in await hub.claim()] == [session]


async def test_a_hub_without_a_model_claims_nothing(hub: StillHub) -> None:
    await ready(hub)
    made = EmbeddedEngine(hub.units, LIMITS, lambda: 0.5, Signals())
    async with asyncio.TaskGroup() as group:
        group.create_task(made.drained())
        made.hint([SessionId("se_x")])
        await hub.do(lambda u: None)
        made.drain()
    assert (await hub.row(SESSION))["lease_epoch"] == 0


# ------------------------------------------------------------------ timers
@pytest.mark.clause("B11.7")
async def test_timers_fire_what_is_due_and_wake_the_session(hub: StillHub) -> None:
    item = await hub.opened()
    asked = waits.Asked(kind=WaitKind.TIMER, ref="", why="a nap", deadline_s=60)
    await hub.do(lambda u: waits.register(u, item.id, asked))
    await hub.asleep(item)
    woken = asyncio.Event()
    timers = Timers(hub.units, lambda found: woken.set(), sweep_s=30.0)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(timers.run())
        await hub.until(lambda: hub.see(lambda c: waits.open_of(c, item.id)))
        assert not woken.is_set()
        hub.clock.go_on(60)
        timers.hint()
        async with asyncio.timeout(10):
            await woken.wait()
        task.cancel()
    (notice,) = await hub.see(lambda c: intake.unread(c, item.session))
    assert notice.trigger.kind == "wait.deadline"


@pytest.mark.parametrize(
    ("next_ms", "pause_s"),
    [(None, 30.0), (START_MS + 5000, 5.0), (START_MS - 5000, SOON_S), (START_MS + 10**9, 30.0)],
)
async def test_timers_sleep_until_the_next_deadline_and_no_longer_than_a_sweep(
    hub: StillHub, next_ms: int | None, pause_s: float
) -> None:
    assert Timers(hub.units, hub.wake, sweep_s=30.0)._pause_s(next_ms) == pause_s
