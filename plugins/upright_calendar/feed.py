"""Feed: one iCalendar file, asked for by condition; a torn one deletes nothing."""

from __future__ import annotations

from typing import Final
from zoneinfo import ZoneInfo

from upright.api import ConnectorNotReadyError
from upright_calendar.client import CalendarClient
from upright_calendar.copies import Copy, Found, Look, grouped, parsed, troubles_of

_TORN: Final = "no END:VCALENDAR"


class Feed:
    """A calendar that is published as a file; keys are UIDs."""

    def __init__(self, client: CalendarClient, zone: ZoneInfo) -> None:
        self._client = client
        self._zone = zone
        self._conditions: dict[str, str] = {}

    async def find(self) -> Found:
        """Read it once."""
        look = await self._look({})
        count = len(look.copies) if look else 0
        return Found(summary=f"a feed of {count} events and series")

    async def look(self) -> Look | None:
        """Ask for it, if it changed."""
        return await self._look(self._conditions)

    async def _look(self, conditions: dict[str, str]) -> Look | None:
        accept = {"Accept": "text/calendar, */*;q=0.5"}
        answer = await self._client.ask("GET", self._client.url, headers={**accept, **conditions})
        if answer.status == 304 and conditions:
            return None
        if answer.status != 200:
            problem = f"The feed is not there (HTTP {answer.status})"
            raise ConnectorNotReadyError(problem)
        calendar = await parsed(answer.body, self._zone)
        whole = b"BEGIN:VCALENDAR" in answer.body.upper()
        if not whole or any(broken.why == _TORN for broken in calendar.broken):
            raise ConnectorNotReadyError("What came is no calendar, or only a part of one")
        asked = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}
        self._conditions = {
            name: answer.headers[said] for name, said in asked.items() if said in answer.headers
        }
        return Look(
            copies={
                uid: Copy(uid=uid, events=events, place=calendar.name)
                for uid, events in grouped(calendar).items()
            },
            unread=frozenset(broken.uid for broken in calendar.broken if broken.uid),
            troubles=tuple(troubles_of(calendar, "the feed")),
        )
