"""Stops: where a kill can land: the stops of the one-way flow (A3), and on which side of a commit.

Most units of work leave an event, which names the stop. Those that leave none are known by who
handed them in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from upright.store.trail import Trace


class Side(StrEnum):
    """When: inside the transaction, after the commit and before the caller knows, or between."""

    BEFORE = "before"
    AFTER = "after"
    DURING = "during"


class Victim(StrEnum):
    """Who is killed: the hub, the daemon, or the daemon with the shim of a running command."""

    HUB = "hub"
    EXECD = "execd"
    SHIM = "execd and shim"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One place for a kill."""

    victim: Victim
    stop: str
    side: Side


INTAKE: Final = ("intake.accepted", "intake.duplicate", "intake.woke")
"""Stops between the receipt of a webhook and its answer."""
RECOVERED: Final = "hub.recovered"
MODEL: Final = "llm.chat"
RUNNING: Final = "command.running"
SPOOL: Final = ("spool.spec", "spool.started", "spool.exit")

STEPS: Final[Mapping[str, int]] = {
    RECOVERED: 0,
    "source.reported": 1,
    "intake.accepted": 5,
    "intake.duplicate": 5,
    "intake.woke": 5,
    "engine.claim": 7,
    "engine.renew": 7,
    "turn.begun": 8,
    "turn.took": 8,
    MODEL: 9,
    "llm.replied": 10,
    "tool.ran": 10,
    "work.opened": 10,
    "command.queued": 10,
    "effect.committed": 10,
    "turn.answered": 10,
    "work.completed": 10,
    "turn.ended": 10,
    "outbox.claimed": 11,
    "effect.settled": 11,
    "device.seen": 12,
    "device.inventory": 12,
    "device.announced": 12,
    "command.sent": 12,
    "command.started": 12,
    RUNNING: 12,
    "output.stored": 12,
    "command.ended": 12,
    **dict.fromkeys(SPOOL, 12),
}
"""Each stop with its number in A3; 0 is the start of the hub."""

EARLY: Final = frozenset(
    {RECOVERED, "source.reported", "device.seen", "device.inventory", "device.announced"}
)
"""Stops that come with every start."""
_OFTEN: Final = frozenset(
    {"engine.claim", "llm.replied", "tool.ran", "turn.answered", "output.stored"}
    | {"command.queued", "command.sent", "command.started", "command.ended", "intake.accepted"}
)
_BY_EXECD: Final = tuple(
    stop
    for stop in STEPS
    if stop.startswith(("command.", "device.", "output.")) and stop != RUNNING
)
_ELSEWHERE: Final = frozenset({MODEL, RUNNING, *SPOOL})


def places(target: str) -> tuple[Place, ...]:
    """Return every place that must be met, for the target ``hub``, ``execd`` or ``both``."""
    sides = (Side.BEFORE, Side.AFTER)
    hub = [
        Place(Victim.HUB, stop, side) for stop in STEPS if stop not in _ELSEWHERE for side in sides
    ]
    hub.append(Place(Victim.HUB, MODEL, Side.DURING))
    execd = [Place(Victim.EXECD, stop, side) for stop in _BY_EXECD for side in sides]
    execd += [Place(Victim.EXECD, stop, Side.AFTER) for stop in SPOOL]
    execd.append(Place(Victim.EXECD, RUNNING, Side.DURING))
    execd.append(Place(Victim.SHIM, RUNNING, Side.DURING))
    return tuple({"hub": hub, "execd": execd, "both": hub + execd}[target])


def is_often(stop: str) -> bool:
    """Say whether a stop comes several times in one story."""
    return stop in _OFTEN


# ------------------------------------------------------------------ which stop a unit is
_BY_EVENT: Final = {
    "work.opened": "work.opened",
    "effect.committed": "effect.committed",
    "command.queued": "command.queued",
    "tool.ran": "tool.ran",
    "turn.took": "turn.took",
    "engine.claimed": "turn.begun",
    "llm.replied": "llm.replied",
    "turn.ended": "turn.ended",
    "command.started": "command.started",
    "command.ended": "command.ended",
    "effect.settled": "effect.settled",
}
"""The event that tells most comes first."""
BY_UNIT: Final = {
    "_begin.": RECOVERED,
    "_Builder.connectors.": "source.reported",
    "Intake._store.": "intake.duplicate",
    "EmbeddedEngine._claim.": "engine.claim",
    "EmbeddedEngine._renew.": "engine.renew",
    "_Run._await_jobs.": "turn.answered",
    "Sender._claim.": "outbox.claimed",
    "StoredRoster.seen.": "device.seen",
    "LinkEnd.on_inventory.": "device.inventory",
    "LinkEnd.on_workspaces.": "device.announced",
    "LinkEnd._push_one.": "command.sent",
    "LinkEnd.on_output.": "output.stored",
}
_MAY_BE_IDLE: Final = {"EmbeddedEngine._claim.", "Sender._claim.", "LinkEnd._push_one."}
"""Units that change nothing when what they return is empty or false."""


def names_of(unit: Callable[..., object], depth: int = 4) -> list[str]:
    """Return the name of a unit of work, and of those that were wrapped to make it."""
    if not depth or not inspect.isfunction(unit):
        return []
    inner = inspect.getclosurevars(unit).nonlocals.values()
    wrapped = (name for one in inner if callable(one) for name in names_of(one, depth - 1))
    return [unit.__qualname__, *wrapped]


def stop_of(names: Sequence[str], traces: Sequence[Trace], result: object) -> str | None:
    """Return which stop a unit of work was; None for one that changed nothing of interest."""
    told = {trace.stop: trace.data for trace in traces}
    if told.get("work.moved", {}).get("to") == "completed":
        return "work.completed"
    for event, stop in _BY_EVENT.items():
        if event in told:
            return stop
    if "intake.accepted" in told:
        return _intake(told["intake.accepted"])
    found = (unit for unit in BY_UNIT for name in names if name.startswith(unit))
    unit = next(found, "")
    return None if unit in _MAY_BE_IDLE and not result else BY_UNIT.get(unit)


def _intake(fate: Mapping[str, Any]) -> str:
    return "intake.woke" if fate.get("disposition") in {"started", "woke", "joined"} else INTAKE[0]
