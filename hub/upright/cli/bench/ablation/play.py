"""Play: one run of a trace through the hub's own intake, routing, turns and prompts."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from upright.agent.turn import AgentLimits, AgentParts, TurnRunner
from upright.api import ActorKind
from upright.cli.bench.ablation import trace
from upright.cli.bench.ablation.arms import Arm, Cell
from upright.cli.bench.ablation.books import Bill, Books
from upright.cli.bench.ablation.box import Box, pair
from upright.cli.bench.ablation.heard import triggers
from upright.cli.bench.ablation.meter import Meter
from upright.cli.bench.ablation.mind import ROUTER, WORKER
from upright.cli.bench.ablation.trace import Happening
from upright.cli.bench.ablation.virtual import LoopClock, VirtualLoop
from upright.core.fold import Quiet
from upright.core.gate import DEFAULT_RULES, Rules
from upright.core.ids import PREFIXES
from upright.core.transcript import encode
from upright.core.trigger import People, Person
from upright.engine.embedded import EmbeddedEngine, EngineLimits
from upright.engine.ports import ChatModel
from upright.engine.signals import Signals
from upright.engine.units import Units
from upright.llm.mapping import to_chat
from upright.store import intake, sessions, views_routing
from upright.store.intake import Accepted, Policy
from upright.store.memory import Memory
from upright.store.storage import Storage
from upright.store.unit import Connection

PEOPLE: Final = People.of(
    tuple(
        Person(name=name, kind=ActorKind.MEMBER, ids=frozenset({f"{trace.SOURCE}:{name}"}))
        for name in trace.MEMBERS
    ),
    trusted_bots=frozenset({f"{trace.SOURCE}:{trace.CI.id}"}),
)
RULES: Final = Rules(version="1", rules=DEFAULT_RULES)
LIMITS: Final = EngineLimits(turns=16, lease_s=600.0, sweep_s=60.0)
FROM_OUTSIDE: Final = frozenset({trace.ASKED, trace.SAID, trace.RED})
LONGEST_S: Final = 2 * 86_400.0
LOOKS_S: Final = 30.0


class StuckError(Exception):
    """A run came to no end, or lost something."""


class CountedIds:
    """Ids in the order of their making."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def new(self, kind: str) -> str:
        """Return ``<prefix>_<26 digits>``."""
        return f"{PREFIXES[kind]}_{next(self._numbers):026d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run came to.

    ``mean_s`` is a task's mean time, virtual seconds from being asked for to its completion;
    ``transcript`` the digest of what the router was told and said; ``told`` counts the triggers
    that workers were told of, ``folded`` those that waited for a quiet window's end.
    """

    router: Bill
    worker: Bill
    tasks: int
    mean_s: float
    transcript: str
    told: int
    folded: int
    busts: int

    @property
    def cached(self) -> float:
        """Cache-read tokens per finished task, of the router and the workers."""
        return (self.router.cached + self.worker.cached) / self.tasks

    @property
    def usd(self) -> float:
        """Dollars per finished task."""
        return (self.router.usd_micros + self.worker.usd_micros) / self.tasks / 1e6


def play(cell: Cell, tasks: int, memory: Memory) -> Outcome:
    """Run a cell on virtual time.

    Raises:
        StuckError: a task was not finished, or a trigger not told exactly once.
    """
    memory.forget()
    books = Books()
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        meter = Meter(clock=LoopClock(), books=books)
        run = Run(World(arm=cell.arm, seed=cell.seed, store=memory, model=meter, books=books))
        return runner.run(run.run(trace.draw(cell.seed, tasks, cell.follow_ups)))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a run is given; ``scale`` is seconds of the loop for one of the trace's."""

    arm: Arm
    seed: int
    store: Storage
    model: ChatModel
    books: Books
    scale: float = 1.0

    def quiet(self) -> Quiet:
        """Return the arm's quiet window on the loop's time."""
        whole = self.arm.quiet
        return Quiet(
            quiet_ms=round(self.scale * whole.quiet_ms), most_ms=round(self.scale * whole.most_ms)
        )


class Run:
    """The hub's parts for one run, on the loop's own time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._signals = Signals()
        self._units = Units(world.store, LoopClock(), CountedIds(), committed=lambda: None)
        self._engine = EmbeddedEngine(self._units, LIMITS, lambda: 0.5, self._signals)
        self._policy = Policy(
            rules=RULES,
            people=PEOPLE,
            routes=True,
            quiet=world.quiet(),
            passes=world.arm.passes,
        )
        self._box = Box(
            units=self._units,
            signals=self._signals,
            woken=self._engine.hint,
            seed=world.seed,
            scale=world.scale,
        )
        self._began: dict[str, float] = {}
        self._accepted: list[Accepted] = []

    def _runner(self) -> TurnRunner:
        return TurnRunner(
            AgentParts(
                units=self._units,
                model=self._world.model,
                devices=self._box,
                outward=self,
                signals=self._signals,
                wake=self._engine.hint,
                timers=lambda: None,
                roll=lambda: 0.5,
                draining=lambda: self._engine.draining,
                limits=replace(
                    AgentLimits(),
                    context=self._world.arm.bounds,
                    inline_wait_s=self._world.scale * AgentLimits().inline_wait_s,
                ),
            )
        )

    def hint(self) -> None:
        """Take note that the outbox holds something; the port ``Outward``. Nothing is sent."""

    async def run(self, happenings: Sequence[Happening]) -> Outcome:
        """Let everything happen, and wait until all is at rest."""
        await self._units.write(pair)
        async with asyncio.TaskGroup() as group:
            box = group.create_task(self._box.run(), name="box")
            group.create_task(self._engine.run(self._runner()), name="engine")
            await self._happen(happenings)
            await self._rest()
            self._engine.drain()
            box.cancel()
        return await self._units.read(self._outcome)

    async def _happen(self, happenings: Sequence[Happening]) -> None:
        clock, began_s = self._units.clock, self._units.clock.monotonic()
        for one in happenings:
            due_s = began_s + self._world.scale * one.at_s
            await clock.sleep(max(due_s - clock.monotonic(), 0.0))
            accept = partial(
                intake.accept, source=trace.SOURCE, triggers=[one.trigger], policy=self._policy
            )
            (accepted,) = await self._units.write(accept)
            self._accepted.append(accepted)
            self._engine.hint(accepted.sooner)
            self._began.setdefault(one.trigger.context.thread, clock.monotonic())

    async def _rest(self) -> None:
        """Wait until nobody has anything to do, at two looks one after the other."""
        clock, still = self._units.clock, 0
        while still < 2:
            await clock.sleep(self._world.scale * LOOKS_S)
            ready = await self._units.read(sessions.next_ready_ms)
            busy = self._world.books.under_way or self._box.live or ready is not None
            still = 0 if busy else still + 1
            if clock.monotonic() > LONGEST_S:
                raise StuckError("it never comes to rest")

    def _outcome(self, c: Connection) -> Outcome:
        """Look what came of it: all tasks finished, each trigger told once."""
        books, tasks = self._world.books, len(self._began)
        done = [one for one in views_routing.ended(c, 1000) if one["state"] == "completed"]
        if not len(done) == len(books.completed) == tasks:
            message = f"{len(done)} of {tasks} tasks were finished"
            raise StuckError(message)
        told = self._told(c)
        if told != Counter(one.id for one in self._accepted):
            raise StuckError("a trigger was lost, or told twice")
        took = sum(books.completed.values()) - sum(self._began.values())
        return Outcome(
            router=books.bills[ROUTER],
            worker=books.bills[WORKER],
            tasks=tasks,
            mean_s=took / tasks / self._world.scale,
            transcript=_transcript(c),
            told=told.total(),
            folded=sum(bool(one.folded) for one in self._accepted),
            busts=books.busts,
        )

    def _told(self, c: Connection) -> Counter[str]:
        """Count how often workers were told of each trigger that came from outside."""
        return Counter(
            one.id
            for session in self._world.books.completed
            for one in triggers(to_chat(sessions.load(c, session).messages))
            if one.kind in FROM_OUTSIDE
        )


def _transcript(c: Connection) -> str:
    router = sessions.router(c)
    spoken = [encode(message) for message in sessions.load(c, router).messages] if router else []
    return hashlib.sha256("\n".join(spoken).encode()).hexdigest()
