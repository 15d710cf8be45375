"""Agenda: whether a time is free, by all calendars that the hub is given."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pydantic import AwareDatetime, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.core.agenda import told
from upright.core.mandate import Trust
from upright.core.transcript import ToolCall
from upright.engine.ports import AgendaQuestion

LONGEST: Final = timedelta(days=31)


@arguments(config=STRICT)
class AgendaArguments:
    """From when until when, with zones; ``titles`` shows what the appointments are."""

    since: AwareDatetime
    until: AwareDatetime
    titles: bool = False


def question(call: ToolCall) -> AgendaQuestion | None:
    """Return what a call wants to know; None when its unit will refuse it."""
    try:
        asked = TypeAdapter(AgendaArguments).validate_json(call.arguments or "{}")
    except ValidationError:
        return None
    if not asked.since < asked.until <= asked.since + LONGEST:
        return None
    return AgendaQuestion(since=asked.since, until=asked.until)


def _agenda(here: Here, asked: AgendaArguments) -> Outcome:
    if here.agenda is None:
        raise refused("until must be after since, and at most {} days later", LONGEST.days)
    if not (here.agenda.told_by or here.agenda.silent):
        raise refused("no source keeps a calendar")
    shows = asked.titles and bool(here.agenda.appointments)
    body = told(here.agenda, titles=asked.titles)
    return Done(body=body, taints=Trust.STRANGER if shows else Trust.OPERATOR)


AGENDA: Final = Tool(
    name="agenda",
    description="Say what takes up time between two moments, by all calendars. `free` is there "
    "only when every calendar was heard. Titles are private, and material: ask for them only "
    "where you need them, and tell nobody outside.",
    arguments=AgendaArguments,
    run=_agenda,
)
