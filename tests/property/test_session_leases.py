"""Leases as a machine: whatever hubs do, a session has one writer, and no wake is lost."""

from __future__ import annotations

from contextlib import ExitStack

import sqlalchemy as sa
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fixtures.still_hub import CountedIds
from fixtures.store_rows import put, trigger
from upright.core.ids import SessionId
from upright.core.mandate import Trust
from upright.core.transcript import Message, Role
from upright.store import intake, schema, sessions, tables
from upright.store.errors import LeaseLostError
from upright.store.oracle import unheard
from upright.store.sessions import Claim, Line
from upright.store.tables import DELIVERY, ENTRY, SESSION
from upright.store.unit import Unit
from upright.store.writer import open_engine

LEASE_MS = 100
SESSIONS = 2
which = strategies.integers(0, SESSIONS - 1)
LINE = Line(turn="tu", message=Message(role=Role.USER, text="x"))


class Leases(RuleBasedStateMachine):
    """Hubs claim, write, renew, finish, die and stand still; triggers come at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.ids = CountedIds()
        self.now_ms = 1000
        self.held: list[tuple[Claim, int]] = []  # every lease ever given, and its end
        self.newest: dict[str, int] = {}
        self.written = 0
        self.triggers = 0

    @initialize()
    def begin(self) -> None:
        engine = open_engine(":memory:")
        self.stack.callback(engine.dispose)
        self.c: sa.Connection = self.stack.enter_context(engine.connect())
        schema.METADATA.create_all(self.c)
        self.names = [
            sessions.create(self.u, kind="worker", agent="w", work=None, trust=Trust.MEMBER)
            for _ in range(SESSIONS)
        ]

    def teardown(self) -> None:
        self.stack.close()

    @property
    def u(self) -> Unit:
        return Unit(self.c, self.now_ms, self.ids.new)

    # ------------------------------------------------------------ what happens
    @rule(n=which, wake=strategies.booleans())
    def a_trigger_comes(self, n: int, *, wake: bool) -> None:
        self.triggers += 1
        name = f"tr_{self.triggers}"
        put(self.c, trigger(name, kind="x", title="x", at_ms=self.now_ms, disposition="woke"))
        row = tables.Delivery(session_id=self.names[n], trigger_id=name, wake=wake)
        put(self.c, row)
        if wake:
            sessions.wake(self.u, self.names[n])

    @rule(limit=strategies.integers(1, SESSIONS))
    def a_hub_claims(self, limit: int) -> None:
        until = self.now_ms + LEASE_MS
        for claim in sessions.claim(self.c, self.now_ms, until, limit):
            live = [
                old
                for old, ends in self.held
                if old.session == claim.session
                and ends > self.now_ms
                and self.newest[old.session] == old.epoch
            ]
            assert not live, "two live leases on one session"
            assert claim.epoch == self.newest.get(claim.session, 0) + 1
            self.newest[claim.session] = claim.epoch
            self.held.append((claim, until))

    @precondition(lambda self: self.held)
    @rule(data=strategies.data())
    def somebody_writes(self, data: strategies.DataObject) -> None:
        claim = self._any(data)
        before = self.written
        try:
            sessions.append(self.u, claim, LINE)
            self.written += 1
        except LeaseLostError:
            pass
        assert (self.written > before) == (self.newest[claim.session] == claim.epoch)

    @precondition(lambda self: self.held)
    @rule(data=strategies.data())
    def somebody_renews(self, data: strategies.DataObject) -> None:
        claim = self._any(data)
        until = self.now_ms + LEASE_MS
        is_mine = self.newest[claim.session] == claim.epoch
        assert (sessions.renew(self.c, [claim], until) == []) is is_mine
        if is_mine:
            self.held = [  # what was given back, ending at 0, stays given back
                (one, until if one == claim and ends else ends) for one, ends in self.held
            ]

    @precondition(lambda self: self.held)
    @rule(
        data=strategies.data(),
        takes=strategies.booleans(),
        retry_ms=strategies.none() | strategies.integers(0, 200),
    )
    def somebody_finishes(
        self, data: strategies.DataObject, *, takes: bool, retry_ms: int | None
    ) -> None:
        claim = self._any(data)
        retry_at = None if retry_ms is None else self.now_ms + retry_ms
        is_mine = self.newest[claim.session] == claim.epoch
        try:
            sessions.check(self.c, claim)
            if takes:
                unread = intake.unread(self.c, claim.session)
                intake.taken(self.c, claim.session, unread, 1)
            sessions.finish(self.u, claim, retry_at_ms=retry_at, end=False)
        except LeaseLostError:
            assert not is_mine
            return
        assert is_mine
        self.held = [(one, 0 if one == claim else ends) for one, ends in self.held]

    @rule(passed_ms=strategies.sampled_from([1, 60, LEASE_MS - 1, LEASE_MS]))
    def time_passes(self, passed_ms: int) -> None:
        self.now_ms += passed_ms

    @rule()
    def the_hub_is_killed_and_comes_back(self) -> None:
        sessions.free_all(self.c)
        self.held = [(claim, 0) for claim, _ in self.held]

    def _any(self, data: strategies.DataObject) -> Claim:
        return data.draw(strategies.sampled_from([claim for claim, _ in self.held]))

    # ------------------------------------------------------------ what holds
    @invariant()
    def what_wakes_is_in_the_queue(self) -> None:
        assert unheard(self.c) == []

    @invariant()
    def nothing_was_written_by_a_zombie(self) -> None:
        assert self.c.scalar(sa.select(sa.func.count()).select_from(ENTRY)) == self.written

    @invariant()
    def whatever_waits_is_claimed_in_the_end(self) -> None:
        """Claim far in the future, in a savepoint that is taken back: everything is there."""
        savepoint = self.c.begin_nested()
        late = self.now_ms + 10_000
        found = {one.session for one in sessions.claim(self.c, late, late + 1, 99)}
        waiting = self.c.scalars(
            sa.select(DELIVERY.c.session_id)
            .join(SESSION, SESSION.c.id == DELIVERY.c.session_id)
            .where(DELIVERY.c.wake, DELIVERY.c.taken_n.is_(None))
        )
        assert {SessionId(one) for one in waiting} <= found
        savepoint.rollback()


TestLeases = Leases.TestCase
TestLeases.settings = settings(max_examples=20, stateful_step_count=40)
