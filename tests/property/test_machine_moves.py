"""Moves: every event meets every state of work items, waits and requests, as rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final, get_args

import pytest
import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from fixtures.machine_bench import (
    PARTS,
    Event,
    Happenings,
    Machine,
    Row,
    Tally,
    events,
    never_met,
    pair,
    pairs,
    play,
    rarely_met,
)
from fixtures.machine_world import NUMBER, News, open_item, trigger_of
from fixtures.still_hub import ANN, POLICY, SOURCE
from upright.api import Address, Context
from upright.core import request, wait, work
from upright.core.errors import IllegalMoveError, InvalidError, StaleError
from upright.core.request import RequestState
from upright.core.wait import Outcome, WaitKind, WaitState, Wake
from upright.core.work import Evidence, EvidenceGiven, WorkItem, WorkState
from upright.store import intake, requests, waits
from upright.store import work as items
from upright.store.errors import NotNowError

EVENTS: Final = get_args(work.WorkEvent)
PROOF: Final = (Evidence(criterion="tests pass", proof="commit c0ffee01"),)
A_MOVE: Final = st.sampled_from([event() for event in EVENTS])
RARELY: Final = st.sampled_from((False, False, False, True))
KINDS: Final = st.sampled_from((WaitKind.EXTERNAL, WaitKind.TIMER, WaitKind.JOB))
REFS: Final = st.sampled_from(("a", "b"))
LIFE_MS: Final = 1000
HAPPENS: Final[Happenings] = {
    "moves": (24, {"n": NUMBER, "which": st.integers(0, 119), "proved": st.booleans()}),
    "refuses": (8, {"n": NUMBER}),
    "proves": (6, {"n": NUMBER, "accepted": RARELY}),
    "moves_what_has_moved": (2, {"n": NUMBER, "event": A_MOVE}),
    "waits": (8, {"n": NUMBER, "kind": KINDS, "ref": REFS, "seconds": st.integers(0, 60)}),
    "wakes": (6, {"n": NUMBER, "kind": KINDS, "ref": REFS, "older": st.integers(0, 2)}),
    "closes": (4, {"n": NUMBER, "expires": st.booleans()}),
    "asks": (5, {"n": NUMBER, "text": st.sampled_from(("this?", "that?"))}),
    "answers": (6, {"n": NUMBER}),
    "expires": (5, {"noted": st.sampled_from((True, False, False))}),
    "answers_late": (2, {"n": NUMBER}),
    "withdraws": (2, {"n": NUMBER}),
    "opens": (2, {}),
}


class Moves(Machine):
    """Items without turns: anything may happen to them, in their rows."""

    def __init__(self, connection: sa.Connection, met: Counter[str]) -> None:
        super().__init__(connection, met)
        self.opened = 0
        self.ended: dict[tuple[str, str], Row] = {}

    @initialize()
    def begins(self) -> None:
        """Two items are there."""
        self.opens()
        self.opens()

    @rule(event=events(HAPPENS))
    def happens(self, event: Event) -> None:
        """One thing happens."""
        event.on(self)

    def opens(self) -> None:
        """A new item is opened, on a thread of its own."""
        self.opened += 1
        name = f"pr:{self.opened}"
        news = News(ANN, "ci.failed", name, "", Address.MENTION)
        trigger = trigger_of(news, (name,), Context(thread=name))
        self.bench.do(lambda u: intake.accept(u, SOURCE, [trigger], POLICY))
        self.bench.do(open_item)

    # -------------------------------------------------------------- work items
    def moves(self, n: int, which: int, *, proved: bool) -> None:
        """A legal event meets an item; an end is rather rare."""
        item = self._item(n)
        legal = [event for event in EVENTS if (item.state, event) in work.TRANSITIONS]
        rare = [event for event in legal if event is not work.Stopped or which % 3 == 0]
        if rare:
            self._move(item, rare[which // 3 % len(rare)](), proved=proved)

    def refuses(self, n: int) -> None:
        """Every event that the table does not have meets an item."""
        item = self._item(n)
        for event in EVENTS:
            if (item.state, event) not in work.TRANSITIONS:
                self._move(item, event(), proved=True)

    def _move(self, item: WorkItem, event: work.WorkEvent, *, proved: bool) -> None:
        """An event meets an item: the table says what becomes of it."""
        item = replace(item, evidence=PROOF if proved else ())
        wanted = work.TRANSITIONS.get((item.state, type(event)))
        before = self._everything()
        try:
            moved = self.bench.do(lambda u: items.move(u, item, event, reason="so"))
        except IllegalMoveError:
            assert wanted is None
            self.met[f"work: {item.state} refuses {type(event).__name__}"] += 1
        except InvalidError:
            assert isinstance(event, EvidenceGiven)
            assert not proved
            self.met["a claim without evidence"] += 1
        else:
            assert moved.state is wanted
            assert items.read(self.bench.c, item.id) == moved
            self.met[pair("work", item.state, type(event))] += 1
            return
        assert self._everything() == before

    def proves(self, n: int, *, accepted: bool) -> None:
        """A worker says that it is done, with evidence; perhaps that is accepted."""
        item = self._item(n)
        self._move(item, work.EvidenceGiven(), proved=True)
        if accepted:
            self._move(items.read(self.bench.c, item.id), work.Accepted(), proved=True)

    def moves_what_has_moved(self, n: int, event: work.WorkEvent) -> None:
        """B11.6: a decision on an older state is refused, whatever the table says."""
        seen = self._item(n)
        if (seen.state, work.Woken) not in work.TRANSITIONS:
            return
        self.bench.do(lambda u: items.move(u, seen, work.Woken()))
        before = self._everything()
        with pytest.raises((StaleError, IllegalMoveError, InvalidError)):
            self.bench.do(lambda u: items.move(u, seen, event))
        assert self._everything() == before
        self.met["a decision on an older state"] += 1

    def _item(self, n: int) -> WorkItem:
        """Pick an item, mostly one that is not over."""
        over = "state IN ('completed', 'cancelled')" + (" DESC" if n % 5 == 0 else "")
        rows = self.bench.rows(f"SELECT id FROM work ORDER BY {over}, id DESC")
        return items.read(self.bench.c, str(rows[n % min(len(rows), 3)][0]))

    # -------------------------------------------------------------- waits
    def waits(self, n: int, kind: WaitKind, ref: str, seconds: int) -> None:
        """An item waits; a second wait for the same replaces the first."""
        item = self._item(n)
        asked = waits.Asked(kind=kind, ref=ref, why="because", deadline_s=seconds)
        if item.state in work.TERMINAL:
            return
        before = waits.open_of(self.bench.c, item.id)
        try:
            made = self.bench.do(lambda u: waits.register(u, item.id, asked))
        except InvalidError:
            assert seconds == 0
            return
        others = [one for one in before if (one.kind, one.ref) != (kind, ref)]
        self.met["a wait is replaced"] += len(before) - len(others)
        assert waits.open_of(self.bench.c, item.id) == [*others, made]

    def wakes(self, n: int, kind: WaitKind, ref: str, older: int) -> None:
        """Something comes that may end a wait: only an open one of exactly this source."""
        item = self._item(n)
        still = waits.open_of(self.bench.c, item.id)
        if still and n % 2:
            kind, ref = still[0].kind, still[0].ref
        every = waits.of_work(self.bench.c, item.id)
        known = [one for one in every if (one.kind, one.ref) == (kind, ref)]
        live = [one for one in known if one.state is WaitState.OPEN]
        generation = None if older == 0 else item.generation - older + 1
        found = self.bench.do(
            lambda u: waits.settle(u.c, item.id, Wake(kind=kind, ref=ref, generation=generation))
        )
        matches = [one for one in live if generation in {None, one.generation}]
        self.met[f"a wake: {found.outcome}"] += 1
        if matches:
            assert (found.outcome, found.wait) == (Outcome.MATCH, matches[0])
            self.met[pair("wait", WaitState.OPEN, wait.Matched)] += 1
        else:
            assert found.outcome is (Outcome.STALE if known else Outcome.NONE)
            assert [one for one in known if one.state is WaitState.OPEN] == live

    def closes(self, n: int, *, expires: bool) -> None:
        """A deadline, or a cancellation, meets a wait in any state."""
        rows = self.bench.rows("SELECT id FROM wait ORDER BY state <> 'open', id")
        if not rows:
            return
        found = waits.read(self.bench.c, str(rows[n % min(len(rows), 4)][0]))
        if not expires:
            self.bench.do(lambda u: waits.cancel(u.c, found.work, kind=found.kind, ref=found.ref))
            now = waits.read(self.bench.c, found.id).state
            is_open = found.state is WaitState.OPEN
            assert now is (WaitState.CANCELLED if is_open else found.state)
            self.met[pair("wait", found.state, wait.Cancelled)] += 1
            return
        try:
            self.bench.do(lambda u: waits.expire(u.c, found))
        except IllegalMoveError:
            assert found.state is not WaitState.OPEN
            self.met["a closed wait does not expire"] += 1
        else:
            self.met[pair("wait", found.state, wait.Expired)] += 1

    # -------------------------------------------------------------- requests
    def asks(self, n: int, text: str) -> None:
        """The same open question of one item is one request."""
        item = self._item(n)
        if item.state in work.TERMINAL:
            return
        sql = "SELECT id FROM request WHERE state = 'asked' AND work_id = ? AND prompt = ?"
        before = self.bench.rows(sql, item.id, text)
        asking = requests.Asking(prompt=text, work=item.id, session=item.session, life_ms=LIFE_MS)
        made = self.bench.do(lambda u: requests.ask(u, asking))
        assert before in ([], [(made,)])
        self.met["a question is asked twice"] += bool(before)

    def answers(self, n: int) -> None:
        """The first answer stands; there is none after the time."""
        rows = self.bench.rows("SELECT id FROM request ORDER BY state <> 'asked', id")
        if not rows:
            return
        asked = requests.read(self.bench.c, str(rows[n % min(len(rows), 4)][0]))
        event = request.Answered
        try:
            self.bench.do(lambda u: requests.answer(u, asked, "yes", "ann"))
        except IllegalMoveError:
            assert asked.state is not RequestState.ASKED
            self.met[f"request: {asked.state} refuses {event.__name__}"] += 1
        except NotNowError:
            assert asked.expires_at_ms <= self.bench.now_ms
            self.met["an answer after the time"] += 1
        else:
            assert asked.state is RequestState.ASKED
            self.met[pair("request", asked.state, event)] += 1

    def answers_late(self, n: int) -> None:
        """The time passes, nobody has noted that yet, and then an answer comes."""
        self.asks(n, "this?")
        self.bench.go_on(LIFE_MS / 1000)
        self.answers(n)

    def expires(self, *, noted: bool) -> None:
        """Time passes, and it is noted; or not yet."""
        self.bench.go_on(LIFE_MS / 2000)
        if noted:
            late = self.bench.do(lambda u: requests.expire_due(u.c, u.now_ms))
            self.met[pair("request", RequestState.ASKED, request.TimePassed)] += len(late)

    def withdraws(self, n: int) -> None:
        """An item's questions are not needed any more."""
        item = self._item(n)
        sql = "SELECT count(*) FROM request WHERE state = 'asked' AND work_id = ?"
        ((count,),) = self.bench.rows(sql, item.id)
        self.bench.do(lambda u: requests.withdraw(u.c, work=item.id))
        self.met[pair("request", RequestState.ASKED, request.Withdrawn)] += count

    # -------------------------------------------------------------- what holds
    @invariant()
    def what_has_ended_stays_so(self) -> None:
        """Invariant 5; and nothing is open of what is over."""
        for table, states in (
            ("work", set(work.TERMINAL)),
            ("wait", set(WaitState) - {WaitState.OPEN}),
            ("request", set(RequestState) - {RequestState.ASKED}),
        ):
            for row in self.bench.rows(f"SELECT id, state FROM {table}"):
                known = self.ended.get((table, row[0]))
                assert known in {None, row}
                if row[1] in states:
                    self.ended[table, row[0]] = row
        over = "work_id IN (SELECT id FROM work WHERE state IN ('completed', 'cancelled'))"
        assert not self.bench.rows(f"SELECT id FROM wait WHERE state = 'open' AND {over}")
        assert not self.bench.rows(f"SELECT id FROM request WHERE state = 'asked' AND {over}")

    def _everything(self) -> list[list[Row]]:
        tables = ("work", "wait", "request", "job", "outbox", "session", "event")
        return [self.bench.rows(f"SELECT * FROM {table}") for table in tables]


REFUSED: Final = tuple(
    f"work: {state} refuses {event.__name__}"
    for state in WorkState
    for event in EVENTS
    if (state, event) not in work.TRANSITIONS
)
RACES: Final = (
    "a decision on an older state",
    "a claim without evidence",
    "a wait is replaced",
    "a wake: match",
    "a wake: stale",
    "a wake: none",
    "a question is asked twice",
    "an answer after the time",
    "a closed wait does not expire",
)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.case("HO/2252")
def test_each_event_meets_each_state_and_what_has_ended_stays_so(
    connection: sa.Connection, part: int, tally: Tally
) -> None:
    met = play(Moves, connection, part=part, examples=9, steps=100)
    whole = tally.add(Moves.__name__, part, met)
    assert never_met(whole, pairs("work", work.TRANSITIONS)) == []
    assert never_met(whole, pairs("wait", wait.TRANSITIONS)) == []
    assert never_met(whole, pairs("request", request.TRANSITIONS)) == []
    assert never_met(whole, REFUSED) == []
    assert rarely_met(whole, RACES) == {}
