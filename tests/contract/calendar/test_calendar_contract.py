"""The calendar connector keeps the contract of all connectors, against a real Radicale."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import ClassVar, Final

import pytest

from fixtures.radicale import PASSWORD, Desk, Radicale, user
from upright.api import Connector, Destination, SecretRef
from upright.kit.calendar.lines import escape, unescape
from upright.testing.context import MemoryContext
from upright.testing.contract import ConnectorContract
from upright.testing.outside import Outside, Said
from upright_calendar.connector import CalendarConnector
from upright_calendar.settings import CalendarSettings
from upright_calendar.writer import uid_of

POLL_S: Final = 5.0


@dataclass(slots=True)
class Office(Outside):
    """One calendar, in which somebody else writes, too."""

    desk: Desk
    context: MemoryContext
    numbers: count[int] = field(default_factory=lambda: count(1))
    hours: count[int] = field(default_factory=count)

    def connector(self) -> Connector:
        settings = CalendarSettings(
            url=self.desk.server.url,
            user=self.desk.user,
            password=SecretRef("s"),
            poll_s=POLL_S,
            starts=False,
        )
        return CalendarConnector("contract", settings)

    async def say(self, text: str) -> Said:
        return await self._put(f"e{next(self.numbers):03d}", text)

    async def edit(self, said: Said, text: str) -> Said:
        return await self._put(said.native, text)

    async def delete(self, said: Said) -> Said:
        await self.desk.delete(said.native)
        return said

    async def say_as_us(self, text: str) -> Said:
        return await self._put(uid_of(text), text)

    async def hang(self) -> None:
        self.desk.server.pause()

    def destination(self) -> Destination:
        starts = (self.context.now() + timedelta(days=2)).isoformat()
        return Destination(source="contract", kind="event", address=(("starts", starts),))

    async def visible(self) -> Sequence[str]:
        text = (await self.desk.texts()).replace("\r\n ", "")
        return [unescape(line[8:]) for line in text.splitlines() if line.startswith("SUMMARY:")]

    async def _put(self, uid: str, text: str) -> Said:
        now = self.context.now()
        begins = now + timedelta(days=1, hours=2 * next(self.hours))  # none is in another's way
        at, starts = f"{now:%Y%m%dT%H%M%SZ}", f"{begins:%Y%m%dT%H%M%SZ}"
        lines = (f"DTSTAMP:{at}", f"DTSTART:{starts}", "DURATION:PT1H")
        await self.desk.put(uid, *lines, f"SUMMARY:{escape(text)}")
        return Said(native=uid)


@pytest.mark.feature("calendar.contract")
class TestCalendarContract(ConnectorContract):
    """What somebody writes into the calendar is heard at the next look."""

    nudge_s: ClassVar[float] = POLL_S
    huge_chars: ClassVar[int] = 15_000

    @pytest.fixture(autouse=True)
    def _server(self, radicale: Radicale) -> None:
        self._radicale = radicale

    @asynccontextmanager
    async def outside(self, context: MemoryContext) -> AsyncIterator[Outside]:
        context.secrets["s"] = PASSWORD
        desk = Desk(server=self._radicale, user=user())
        await desk.make()
        try:
            yield Office(desk, context)
        finally:
            self._radicale.go_on()
            await desk.session.close()
