"""Agenda: an agent asks whether a time is free; every calendar is asked, a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fixtures.agents import Agents, ScriptedChat, call
from fixtures.still_hub import ANN, StillHub, trigger
from upright.api import Address, Appointment, ConnectorNotReadyError
from upright.compose.agenda import HubAgenda
from upright.core.mandate import Trust
from upright.engine.ports import AgendaTeller, unkept

NOON = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)
HOUR = {"since": "2026-06-10T12:00:00Z", "until": "2026-06-10T13:00:00Z"}
TAKEN = Appointment(since=NOON, until=NOON + timedelta(hours=1), title="Dentist")


@dataclass
class Calendars:
    """Sources with calendars: what each tells, or why it can't; ``asked`` is what they heard."""

    tell: Mapping[str, Sequence[Appointment] | Exception]
    asked: list[tuple[str, datetime, datetime]] = field(default_factory=list)

    def with_agenda(self) -> tuple[str, ...]:
        return tuple(self.tell)

    async def agenda(self, source: str, since: datetime, until: datetime) -> Sequence[Appointment]:
        self.asked.append((source, since, until))
        told = self.tell[source]
        if isinstance(told, TimeoutError):
            await asyncio.Event().wait()
        if isinstance(told, Exception):
            raise told
        return told


async def looked(
    hub: StillHub, arguments: Mapping[str, Any], agenda: AgendaTeller = unkept
) -> tuple[dict[str, Any], Trust]:
    """Have the router look at the agenda; return what it was told, and its taint."""
    await hub.one(trigger("comment.created", by=ANN, address=Address.MENTION))
    agents = Agents(hub, ScriptedChat(router=(call("agenda", arguments),)), agenda=agenda)
    await agents.turns()
    router = await hub.router()
    (told,) = await agents.told(router)
    return told, (await agents.loaded(router)).taint


async def test_every_calendar_is_asked_for_that_time(hub: StillHub) -> None:
    calendars = Calendars({"desk": (), "home": (TAKEN,)})
    told, _ = await looked(hub, HOUR, HubAgenda(connectors=calendars))
    assert told == {"taken": [HOUR], "told_by": ["desk", "home"], "free": False}
    assert sorted(calendars.asked) == [
        (name, NOON, NOON + timedelta(hours=1)) for name in ("desk", "home")
    ]


@pytest.mark.parametrize("why", [ConnectorNotReadyError("away"), TimeoutError()])
async def test_where_one_could_not_tell_nothing_is_called_free(
    hub: StillHub, why: Exception
) -> None:
    agenda = HubAgenda(connectors=Calendars({"desk": (), "home": why}), patience_s=0.01)
    told, _ = await looked(hub, HOUR, agenda)
    assert told == {"taken": [], "told_by": ["desk"], "could_not_tell": ["home"]}


@pytest.mark.clause("B14.2", "B7.6")
@pytest.mark.parametrize("titles", [False, True])
async def test_times_alone_taint_nobody_and_titles_do(hub: StillHub, *, titles: bool) -> None:
    agenda = HubAgenda(connectors=Calendars({"desk": (TAKEN,)}))
    told, taint = await looked(hub, {**HOUR, "titles": titles}, agenda)
    assert told["taken"][0].get("title") == ("Dentist" if titles else None)
    assert taint is (Trust.STRANGER if titles else Trust.MEMBER)


async def test_without_any_calendar_it_says_so(hub: StillHub) -> None:
    told, _ = await looked(hub, HOUR)
    assert told == {"error": "no source keeps a calendar"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"since": HOUR["until"], "until": HOUR["since"]}, "until must be after since"),
        ({"since": HOUR["since"], "until": "2026-08-10T12:00:00Z"}, "at most 31 days later"),
        ({"since": "2026-06-10T12:00:00", "until": HOUR["until"]}, "don't fit"),
        ({**HOUR, "whose": "mine"}, "don't fit"),
    ],
    ids=["backwards", "too-long", "no-zone", "unknown-key"],
)
async def test_what_can_not_be_asked_is_refused_and_nobody_is_asked(
    hub: StillHub, arguments: Mapping[str, Any], said: str
) -> None:
    calendars = Calendars({"desk": (TAKEN,)})
    told, _ = await looked(hub, arguments, HubAgenda(connectors=calendars))
    assert said in told["error"]
    assert calendars.asked == []
