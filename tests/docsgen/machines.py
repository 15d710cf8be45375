"""Machines: the state diagrams of the docs, drawn from the tables that the code runs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from upright.core import connector, job, outbox, request, wait, work
from upright_wire import command


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A table of moves, (state, event type) to state, and all its states, the first one first."""

    table: Mapping[Any, StrEnum]  # each machine has its own enum: no one type fits all of them
    states: type[StrEnum]

    def moves(self) -> dict[tuple[str, str], list[str]]:
        """Return the names of the events for each (from, to), in the table's order."""
        found: dict[tuple[str, str], list[str]] = {}
        for (state, event), after in self.table.items():
            found.setdefault((state.value, after.value), []).append(event.__name__)
        return found

    def diagram(self) -> str:
        """Draw it with mermaid; a state without a way out leads to the end."""
        moves = self.moves()
        names = [state.value for state in self.states]
        leaving = {before for before, _ in moves}
        arrows = [
            f"    {before} --> {after}: {', '.join(events)}"
            for (before, after), events in moves.items()
        ]
        ends = [f"    {name} --> [*]" for name in names if name not in leaving]
        head = ["```mermaid", "stateDiagram-v2", f"    [*] --> {names[0]}"]
        return "\n".join([*head, *arrows, *ends, "```"])

    def count(self) -> str:
        """Say how many of the (state, event) pairs are moves."""
        pairs = len(self.states) * len({event for _, event in self.table})
        legal = len(self.table)
        return f"{legal} of {pairs} pairs are moves; the others raise `IllegalMoveError`."


MACHINES: Final[Mapping[str, Machine]] = {
    "work": Machine(table=work.TRANSITIONS, states=work.WorkState),
    "wait": Machine(table=wait.TRANSITIONS, states=wait.WaitState),
    "job": Machine(table=job.TRANSITIONS, states=job.JobState),
    "command": Machine(table=command.TRANSITIONS, states=command.State),
    "outbox": Machine(table=outbox.TRANSITIONS, states=outbox.OutboxState),
    "connector": Machine(table=connector.TRANSITIONS, states=connector.ConnectorState),
    "request": Machine(table=request.TRANSITIONS, states=request.RequestState),
}


def drawing(name: str) -> str:
    """Return the generated part of one machine: its diagram and its count."""
    machine = MACHINES[name]
    return f"{machine.diagram()}\n\n{machine.count()}"
