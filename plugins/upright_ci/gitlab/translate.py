"""Translation: which event becomes a trigger, as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from upright.api import Trigger
from upright_ci.gitlab import runs, talk
from upright_ci.gitlab.event import Event
from upright_ci.gitlab.runs import Logs

Make = Callable[[Event, Logs], Trigger | None]

TABLE: Final[Mapping[str, Make]] = {
    "pipeline": runs.pipeline,
    "build": runs.job,
    "merge_request": lambda event, _: talk.merge_request(event),
    "note": lambda event, _: talk.note(event),
}


def translate(kind: str, event: Event, logs: Logs) -> Trigger | None:
    """Return the trigger of an event; None where none is made of it.

    Raises:
        TriggerRejectedError: the payload of a known event lacks what that event always has.
    """
    make = TABLE.get(kind)
    return make(event, logs) if make else None
