"""A month in seconds: a thousand sleeping items, daily timers, two crashes a day; all fire once.

A crash drops what is in the process, in the middle of a unit or between two commits; the database
is opened again, and everything is derived from it. Time is the test's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final

import pytest
import sqlalchemy as sa

from fixtures.agents import TEST, call, worker
from fixtures.still_hub import RULES, SOURCE, START, START_MS, StillHub, opening_of, trigger
from upright.core import work as machine
from upright.core.gate import Mode
from upright.core.trigger import Disposition
from upright.core.wait import WaitKind
from upright.engine.embedded import recover
from upright.store import deadlines, intake, sessions, waits, work
from upright.store.events import About, record
from upright.store.sessions import Claim
from upright.store.tables import ENTRY, EVENT, SESSION, TRIGGER, WAIT, WORK
from upright.store.unit import Unit

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
DAYS: Final = 30
DAILY: Final = 10
WOKEN: Final = 60  # of these, each second one wakes once in the month
ITEMS: Final = 1000  # the rest sleep on
pytestmark = pytest.mark.timeout(240)  # seconds on a free machine; others may be at work, too


class CrashError(Exception):
    """The process is gone, in the middle of a unit."""


def spread(number: int, over: int) -> int:
    """Return a number below *over*; those of neighbours lie far apart."""
    return number * 2_654_435_761 % (1 << 32) % over


@dataclass
class Month:
    """Items that sleep, of which some wake each day; ``crashes`` counts the lives so far."""

    hub: StillHub
    daily: set[str] = field(default_factory=set)
    crashes: int = 0
    naps: int = 0

    async def fill(self) -> None:
        """Open items: with a daily timer, with one somewhen; and those that sleep on."""
        accepted = await self.hub.accept(
            *(trigger("ci.failed", thread=f"pr:{n}") for n in range(DAILY + WOKEN + 1))
        )
        router = await self.hub.router()

        def unit(u: Unit) -> None:
            items = list[machine.WorkItem]()
            for number, one in enumerate(accepted):
                opening = opening_of(u.c, one.id, ("tests pass",))
                intake.taken(u.c, router, [opening.trigger], 1)
                item = work.open_item(u, opening, router).item
                if number < DAILY:
                    self.daily.add(item.session)
                self._sleep(u, item)
                items.append(item)
            u.c.execute(SESSION.update().values(ready_at_ms=None))
            _copy(u.c, ITEMS - len(items), items[-1])

        await self.hub.do(unit)

    def _sleep(self, u: Unit, item: machine.WorkItem) -> None:
        intake.taken(u.c, item.session, intake.unread(u.c, item.session), 1)
        at_ms = self._next(u.now_ms, item.session)
        seconds = (at_ms - u.now_ms) // 1000
        nap = waits.Asked(kind=WaitKind.TIMER, ref="", why="a nap", deadline_s=seconds)
        waits.register(u, item.id, nap)
        work.rest(u, work.read(u.c, item.id))

    def _next(self, now_ms: int, session: str) -> int:
        """Return the next time of a daily timer; of some of the others one hour, once."""
        if session in self.daily:
            return START_MS + ((now_ms - START_MS) // DAY_MS + 1) * DAY_MS + 7 * 60_000
        self.naps += now_ms == START_MS
        if now_ms == START_MS and self.naps % 2 == 0:
            return START_MS + (1 + spread(self.naps, DAYS * 24)) * HOUR_MS
        return START_MS + 400 * DAY_MS

    async def crash(self, *, closes: bool = False) -> None:
        """Lose what is in the process, and derive everything from the rows again."""
        self.crashes += 1
        if closes:
            await self.hub.reopen()
        await self.hub.do(recover)

    async def run(self) -> None:
        """Let the month pass, from one deadline to the next, and crash twice a day."""
        end_ms = START_MS + DAYS * DAY_MS + DAY_MS // 2
        plan = [START_MS + half * DAY_MS // 2 for half in range(1, 2 * DAYS + 1)]
        while True:
            next_ms = await self.hub.see(deadlines.next_ms)
            assert next_ms is not None
            if next_ms > end_ms and not plan:
                return
            dies = bool(plan) and plan[0] <= next_ms
            self._go_to(plan.pop(0) if dies else next_ms)
            await self._wake(dies=dies)

    def _go_to(self, at_ms: int) -> None:
        self.hub.clock.at = START + timedelta(milliseconds=at_ms - START_MS)

    async def _wake(self, *, dies: bool) -> None:
        """Fire what is due and let the woken sleep again; a dying hub does each in two lives."""
        where = self.crashes % 4 if dies else -1
        if where == 0:
            await self._torn(deadlines.fire_due)
        await self.hub.do(deadlines.fire_due)
        if where == 1:
            await self.crash(closes=True)
        claims = await self.hub.claim()
        if where == 2:
            await self.crash()
            claims = await self.hub.claim()
        if where == 3:
            await self._torn(partial(self._turns, claims=claims))
            claims = await self.hub.claim()
        while claims:
            await self.hub.do(partial(self._turns, claims=claims))
            claims = await self.hub.claim()

    async def _torn(self, unit: Callable[[Unit], object]) -> None:
        """Die before a commit: the unit has done everything, and nothing of it is there."""

        def torn(u: Unit) -> None:
            unit(u)
            raise CrashError

        with pytest.raises(CrashError):
            await self.hub.do(torn)
        await self.crash()

    def _turns(self, u: Unit, claims: Sequence[Claim]) -> None:
        for claim in claims:
            self._turn(u, claim)

    def _turn(self, u: Unit, claim: Claim) -> None:
        sessions.check(u.c, claim)
        session = sessions.load(u.c, claim.session)
        assert session.work is not None
        item = work.read(u.c, session.work)
        work.woken(u, item)
        record(u, "month.woke", About(session_id=session.id, work_id=item.id))
        self._sleep(u, work.read(u.c, item.id))
        sessions.finish(u, claim, retry_at_ms=None, end=False)


def _copy(c: sa.Connection, times: int, item: machine.WorkItem) -> None:
    """Let many more items sleep like this one, far beyond the month."""
    wheres = {SESSION: SESSION.c.work_id, WORK: WORK.c.id, WAIT: WAIT.c.work_id}
    for table, of_work in wheres.items():
        (row,) = c.execute(sa.select(table).where(of_work == item.id)).mappings().all()
        ids = [name for name in ("id", "work_id", "session_id", "trigger_id") if name in row]
        copies = [
            {**row, **{name: f"{row[name][:3]}copy{n:022d}" for name in ids}} for n in range(times)
        ]
        c.execute(table.insert(), copies)


@pytest.mark.clause("B11.7", "B2.2")
@pytest.mark.case("HO/2881")
async def test_in_a_month_with_two_crashes_a_day_each_timer_fires_once_at_its_time(
    hub: StillHub,
) -> None:
    month = Month(hub)
    await month.fill()
    await month.run()
    assert month.crashes == 2 * DAYS
    expired = {row["id"]: row["deadline_ms"] for row in await hub.rows(WAIT, state="expired")}
    notices = await hub.rows(TRIGGER, kind="wait.deadline")
    fired = Counter(dict(row["body"]["context"]["facts"])["wait"] for row in notices)
    assert len(expired) == DAILY * DAYS + WOKEN // 2
    assert fired == Counter(expired.keys())
    late = {dict(row["body"]["context"]["facts"])["wait"]: row["received_at_ms"] for row in notices}
    assert late == expired
    woke = Counter(row["session_id"] for row in await hub.rows(EVENT, stop="month.woke"))
    assert [woke[session] for session in month.daily] == [DAYS] * DAILY
    assert set(woke.values()) == {1, DAYS}
    assert await hub.rows(ENTRY) == []
    assert len(await hub.rows(WORK, state="waiting_timer")) == ITEMS


@pytest.mark.clause("B16.3", "B11.3")
@pytest.mark.case("OC/98556")
async def test_a_day_without_an_event_costs_no_model_call_and_no_row(hub: StillHub) -> None:
    agents, _ = await worker(hub, TEST, call("wait", {"for": "thread", "why": "CI runs"}))
    await agents.go()
    calls, newest = len(agents.chat.requests), await hub.see(_newest)
    for _ in range(24 * 6):
        hub.clock.go_on(600)
        assert await hub.do(deadlines.fire_due) == []
        assert await agents.turns() == 0
    assert len(agents.chat.requests) == calls
    assert await hub.see(_newest) == newest


def _newest(c: sa.Connection) -> int:
    return int(c.scalar(sa.select(sa.func.max(EVENT.c.seq))) or 0)


@pytest.mark.clause("B3.2")
@pytest.mark.case("OC/64293")
async def test_a_source_that_is_off_stays_off_over_crashes_and_new_rules(hub: StillHub) -> None:
    off = replace(RULES, modes=((SOURCE, Mode.OFF),))
    for version in ("7", "8", "9"):
        rules = replace(off, version=version)
        hub.policy = replace(hub.policy, rules=rules)
        accepted = await hub.one(trigger("ci.failed"))
        assert (accepted.disposition, accepted.woke) == (Disposition.IGNORED, ())
        await hub.reopen()
        await hub.do(recover)
        assert await hub.claim() == []
