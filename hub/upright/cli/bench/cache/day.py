"""Day: a replayed day over the hub's own intake, routing, turns and prompts, on virtual time.

Hubs follow one another: each is killed in the middle of its turns, and the next one goes on from
the rows. What is compared is what the model was sent, over all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from upright.agent.turn import AgentLimits, AgentParts, TurnRunner
from upright.api import (
    Actor,
    Address,
    Channel,
    Content,
    Context,
    Destination,
    Trigger,
)
from upright.cli.bench.ablation import trace
from upright.cli.bench.ablation.play import LIMITS, PEOPLE, RULES, CountedIds, StuckError
from upright.cli.bench.ablation.trace import Happening
from upright.cli.bench.ablation.virtual import LoopClock, VirtualLoop
from upright.cli.bench.cache.mind import Bill, Mind
from upright.cli.bench.draw import Dice
from upright.core.compaction import ContextBounds
from upright.core.ids import DeviceId
from upright.engine.embedded import EmbeddedEngine, recover
from upright.engine.signals import Signals
from upright.engine.units import Units
from upright.store import intake, sessions, views
from upright.store.intake import Policy
from upright.store.memory import Memory
from upright.store.unit import Connection

DAY_S: Final = 86_400.0
LONGEST_S: Final = 3 * DAY_S
LOOKS_S: Final = 30.0
BOUNDS: Final = ContextBounds(router=14_000, worker=10_500)
"""So that most sessions are compacted once in a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How large the day is; ``hubs`` follow one another, ``bounds`` are in tokens."""

    sessions: int = 50
    triggers: int = 1000
    hubs: int = 10
    bounds: ContextBounds = BOUNDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What the day came to; ``generations`` are the sessions' compactions, the fewest and most."""

    plan: Plan
    bills: dict[str, Bill]
    busts: int
    conversations: int
    generations: tuple[int, int]
    compactions: int
    lost: int

    @property
    def reused(self) -> float:
        """The share of the reusable prefix (the prompt before, in its generation) sent again."""
        bills = self.bills.values()
        return sum(one.reused for one in bills) / max(sum(one.reusable for one in bills), 1)

    @property
    def cached(self) -> float:
        """The share of all prompt bytes that a prompt of the same session had before."""
        bills = self.bills.values()
        return sum(one.cached for one in bills) / max(sum(one.prompt for one in bills), 1)

    @property
    def usd_a_routed(self) -> float:
        """What the router and its compactions cost, by trigger that it routed; US dollars."""
        return self.bills["router"].usd_micros / self.plan.sessions / 1e6


def replay(plan: Plan, memory: Memory) -> Day:
    """Replay a day.

    Raises:
        StuckError: it never came to rest.
    """
    memory.forget()
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_World(plan, memory).run())


def happenings(plan: Plan) -> list[Happening]:
    """Return the day's triggers: each thread begins with a request, and goes on all day."""
    each = plan.triggers // plan.sessions
    found = []
    for thread in range(plan.sessions):
        for n in range(each):
            at_s = DAY_S * (n * plan.sessions + thread) / plan.triggers
            found.append(Happening(at_s=at_s, trigger=_said(thread, n)))
    return sorted(found, key=lambda one: one.at_s)


def _said(thread: int, n: int) -> Trigger:
    dice = Dice(int.from_bytes(f"{thread} {n}".encode()))
    who = trace.CI if n and dice.below(2) else Actor(id=trace.MEMBERS[dice.below(4)])
    kind = (trace.RED if who is trace.CI else trace.SAID) if n else trace.ASKED
    to = Destination(source=trace.SOURCE, kind="comment", address=(("number", str(thread)),))
    return Trigger(
        kind=kind,
        channel=Channel.CI if who is trace.CI else Channel.GITHUB,
        actor=who,
        content=Content(title=f"{kind} {n}", text=trace.prose(dice, 60 + dice.below(160))),
        context=Context(
            thread=f"pr:{thread}",
            address=Address.NONE if n else Address.MENTION,
            reply_to=to,
        ),
        dedupe=(f"{thread}:{n}",),
    )


class _World:
    """The rows that stay, and the hubs that come and go."""

    def __init__(self, plan: Plan, memory: Memory) -> None:
        self._plan = plan
        self._signals = Signals()
        self._units = Units(memory, LoopClock(), CountedIds(), committed=lambda: None)
        self._mind = Mind(clock=LoopClock())
        self._policy = Policy(rules=RULES, people=PEOPLE, routes=True)
        self._engine = self._hub()

    def _hub(self) -> EmbeddedEngine:
        return EmbeddedEngine(self._units, LIMITS, lambda: 0.5, self._signals)

    def _runner(self, engine: EmbeddedEngine) -> TurnRunner:
        return TurnRunner(
            AgentParts(
                units=self._units,
                model=self._mind,
                devices=self,
                outward=_Nobody(),
                signals=self._signals,
                wake=engine.hint,
                timers=lambda: None,
                roll=lambda: 0.5,
                draining=lambda: engine.draining,
                limits=AgentLimits(context=self._plan.bounds),
            )
        )

    def hint(self, devices: object) -> None:
        """Take note of nothing: no command is run; the port ``Devices``."""

    def online(self) -> frozenset[DeviceId]:
        """Say that no device is there."""
        return frozenset()

    async def run(self) -> Day:
        """Let the day happen, one hub after the other, and look what came of it."""
        told = happenings(self._plan)
        share = -(-len(told) // self._plan.hubs)
        for begin in range(0, len(told), share):
            await self._live(told[begin : begin + share], last=begin + share >= len(told))
        return await self._units.read(self._day)

    async def _live(self, told: Sequence[Happening], *, last: bool) -> None:
        """Run a hub over some of the day; all but the last are killed in mid-work."""
        await self._units.write(recover)
        self._engine = self._hub()
        async with asyncio.TaskGroup() as group:
            lives = group.create_task(self._engine.run(self._runner(self._engine)), name="engine")
            for one in told:
                await self._happen(one)
            if last:
                await self._rest()
                self._engine.drain()
            else:
                await self._units.clock.sleep(1.0)  # the last trigger's turn is under way
                lives.cancel()

    async def _happen(self, one: Happening) -> None:
        clock = self._units.clock
        await clock.sleep(max(one.at_s - clock.monotonic(), 0.0))
        take = partial(
            intake.accept, source=trace.SOURCE, triggers=[one.trigger], policy=self._policy
        )
        (accepted,) = await self._units.write(take)
        self._engine.hint(accepted.sooner)

    async def _rest(self) -> None:
        clock, still = self._units.clock, 0
        while still < 2:
            await clock.sleep(LOOKS_S)
            ready = await self._units.read(sessions.next_ready_ms)
            still = 0 if self._mind.under_way or ready is not None else still + 1
            if clock.monotonic() > LONGEST_S:
                raise StuckError("it never comes to rest")

    def _day(self, c: Connection) -> Day:
        found = views.sessions(c, limit=2 * self._plan.sessions)
        generations = [one["generation"] for one in found]
        return Day(
            plan=self._plan,
            bills=self._mind.bills,
            busts=self._mind.busts,
            conversations=len(self._mind.conversations),
            generations=(min(generations), max(generations)),
            compactions=sum(generations),
            lost=sum(sessions.inbox(c, one["id"]).waiting for one in found),
        )


class _Nobody:
    """Nothing is sent."""

    def hint(self) -> None:
        """Take note of nothing; the port ``Outward``."""
