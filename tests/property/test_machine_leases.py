"""Leases over whole turns: a turn that stood still while another hub took over commits nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import pytest
import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from fixtures.machine_bench import PARTS, Event, Happenings, Row, Tally, events, play, rarely_met
from fixtures.machine_model import Answer, answers
from fixtures.machine_turns import LEASE_MS, Running, call, put_back, reply_of
from fixtures.machine_world import HAPPENS, MOSTLY, NUMBER, Story, Work
from fixtures.still_hub import ANN, CI, EVE
from upright.agent import settle, steps
from upright.agent.state import Turn
from upright.core.turn import Ending
from upright.store import sessions
from upright.store.errors import LeaseLostError
from upright.store.unit import Unit

FAILURE: Final = settle.Failure(
    code="model.unavailable", reason="gone", retry_after_s=None, retries=True, roll=0.5
)
PLAN: Final = call("z1", "plan", steps=[])
SPAWN: Final = call("z2", "ask", question="what now?")


def _rest(ending: Ending, u: Unit, turn: Turn) -> object:
    return settle.rest(u, turn, ending)


UNITS: Final[Mapping[str, Callable[[Unit, Turn], object]]] = {
    "begin": lambda u, turn: steps.begin(u, turn.claim),
    "look": lambda u, turn: steps.look(u.c, turn),
    "take_inbox": steps.take_inbox,
    "replied": lambda u, turn: steps.replied(u, turn, reply_of((PLAN,))),
    "run_call: plan": lambda u, turn: steps.run_call(u, turn, PLAN),
    "run_call: ask": lambda u, turn: steps.run_call(u, turn, SPAWN),
    "answer_jobs": lambda u, turn: steps.answer_jobs(u, turn, list(turn.jobs)),
    "nudge": steps.nudge,
    **{f"rest: {ending}": partial(_rest, ending) for ending in Ending},
    "failed": lambda u, turn: settle.failed(u, turn, FAILURE),
    "interrupt": settle.interrupt,
    "put_back": lambda u, turn: put_back(u, turn.claim),
}
"""Everything that a turn commits."""
TABLES: Final = (
    *("session", "entry", "delivery", "work", "wait", "job", "outbox", "request", "turn"),
    *("trigger", "ledger", "event"),
)
STORIES: Final[tuple[Story, ...]] = (
    (CI, "run", 0),
    (ANN, "run", 0),
    (CI, "", 0),
    (EVE, "reply", 0),
    (ANN, "wait thread", 0),
)
RUNS: Final = answers("run", "run", "run")
STALLS: Final[Happenings] = {
    **HAPPENS,
    "works": (
        8,
        {"n": NUMBER, "answers": st.lists(RUNS, min_size=1, max_size=2)},
    ),
    "stalls": (5, {"n": NUMBER}),
    "leases_run_out": (2, {}),
    "is_taken_over": (8, {"n": NUMBER}),
    "a_stalled_turn_goes_on": (8, {"n": NUMBER, "answer": RUNS}),
    "hears": (6, HAPPENS["hears"][1]),
    "claims": (5, HAPPENS["claims"][1]),
    "a_device_comes_or_goes": (0, {}),
    "a_device_tells": (1, HAPPENS["a_device_tells"][1]),
}


class Stalls(Work):
    """A hub of which single turns stand still, while the rest goes on as if they had died."""

    def __init__(self, connection: sa.Connection, met: Counter[str]) -> None:
        super().__init__(connection, met)
        self.stalled: list[Running] = []

    @initialize(stories=st.lists(st.sampled_from(STORIES), min_size=1, max_size=2), device=MOSTLY)
    def begins(self, stories: list[Story], *, device: bool) -> None:
        super().begins(stories, device=device)

    @rule(event=events(STALLS))
    def happens(self, event: Event) -> None:
        """One thing happens."""
        event.on(self)

    def stalls(self, n: int) -> None:
        """A turn stands still: nobody renews its lease."""
        running = sorted(self.turns.running)
        if running:
            self.stalled.append(self.turns.running.pop(running[n % len(running)]))

    def leases_run_out(self) -> None:
        """Those that stand still lose their leases; those that run are renewed."""
        self.bench.go_on(LEASE_MS / 1000 + 1)
        self.turns.renew()

    def is_taken_over(self, n: int) -> None:
        """A turn stands still for so long that the next one of its session begins."""
        self.stalls(n)
        self.leases_run_out()
        self.turns.claim(9)

    def a_stalled_turn_goes_on(self, n: int, answer: Answer) -> None:
        """A turn wakes up: it goes on if nobody took over, and else it is a zombie."""
        if not self.stalled:
            return
        running = self.stalled.pop(n % len(self.stalled))
        claim = running.turn.claim
        sql = "SELECT lease_epoch, ended_at_ms FROM session WHERE id = ?"
        ((newest, _),) = self.bench.rows(sql, claim.session)
        assert newest >= claim.epoch
        if newest > claim.epoch:
            self._zombie(running)
            return
        self.turns.running[claim.session] = running
        self.turns.renew()
        self._act(claim.session, answer)
        self.met["a late turn that nobody replaced goes on"] += 1

    def _zombie(self, running: Running) -> None:
        """Invariant 2: not one of its units leaves a trace."""
        turn, before = running.turn, self._everything()
        sql = "SELECT call_id, id FROM job WHERE session_id = ?"
        turn.jobs = dict(self.bench.rows(sql, turn.claim.session))
        assert sessions.renew(self.bench.c, [turn.claim], self.bench.now_ms + LEASE_MS)
        for name, unit in UNITS.items():
            if name != "answer_jobs" or turn.jobs:
                self._is_refused(name, unit, turn)
        self.met[f"a zombie before its {type(running.next).__name__}"] += 1
        self.met["a zombie"] += 1
        assert self._everything() == before

    def _is_refused(self, name: str, unit: Callable[[Unit, Turn], object], turn: Turn) -> None:
        with pytest.raises(LeaseLostError):
            self.bench.do(lambda u: unit(u, turn))
        self.met[f"a zombie's {name} is refused"] += 1

    def _everything(self) -> dict[str, list[Row]]:
        return {table: self.bench.rows(f"SELECT * FROM {table}") for table in TABLES}

    def at_the_end(self) -> None:
        self.stalled.clear()
        super().at_the_end()


RACES: Final = (
    *(f"a zombie's {name} is refused" for name in UNITS),
    "a late turn that nobody replaced goes on",
)


@pytest.mark.parametrize("part", PARTS)
def test_a_zombie_commits_nothing(connection: sa.Connection, part: int, tally: Tally) -> None:
    met = play(Stalls, connection, part=part, examples=4, steps=50)
    whole = tally.add(Stalls.__name__, part, met)
    assert rarely_met(whole, RACES) == {}
