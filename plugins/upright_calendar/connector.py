"""The connector of one calendar source: it looks, tells what changed, and fires what is due."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from upright.api import (
    Appointment,
    Capabilities,
    ConnectorAuthFailedError,
    ConnectorContext,
    ConnectorNotReadyError,
    Effect,
    Health,
    PermanentSendError,
    Probe,
    Receipt,
    Trigger,
)
from upright.kit.calendar.busy import conflicts
from upright.kit.calendar.event import Event
from upright.kit.calendar.occur import series
from upright.kit.late import late
from upright.kit.quiet import Quiet
from upright_calendar.caldav import CalDav
from upright_calendar.client import CalendarClient
from upright_calendar.copies import Copy, Look, Shelf
from upright_calendar.diff import differences, snapshot
from upright_calendar.feed import Feed
from upright_calendar.moments import Moment, Span, is_over, upcoming
from upright_calendar.settings import CalendarSettings, Protocol
from upright_calendar.state import CursorLostError, State, decode
from upright_calendar.translate import Teller, thread
from upright_calendar.writer import KIND, EventWriter

LOOK_AT_CLOCK_S: Final = 30.0  # so that a clock that jumped is noticed soon
AWAY_S: Final = 900.0  # a server that is gone for longer is the source's trouble
SET_BACK: Final = timedelta(days=1)
FORGETS: Final = timedelta(days=2)  # moments that passed longer ago help nobody


class CalendarConnector(Quiet):
    """One source: one user's calendars on a server, or one feed."""

    def __init__(self, source: str, settings: CalendarSettings) -> None:
        self._source = source
        self._settings = settings
        self._zone = ZoneInfo(settings.zone)
        self._context: ConnectorContext | None = None
        self._client: CalendarClient | None = None
        self._shelf: Shelf | None = None
        self._writer: EventWriter | None = None
        self._copies: tuple[Copy, ...] = ()
        self._calendar: dict[str, list[Event]] = {}
        self._ahead: list[Moment] = []
        self._ahead_until: datetime | None = None
        self._is_read = False
        self._heard_at: datetime | None = None
        self._gap = ""

    async def validate(self) -> Probe:
        """Sign in and find the calendars."""
        _, shelf = self._started()
        found = await shelf.find()
        return Probe(ok=True, summary=found.summary, scopes=found.names)

    async def start(self, context: ConnectorContext) -> None:
        """Resolve the password and make the client; nothing is asked yet."""
        settings = self._settings
        password = context.secret(settings.password) if settings.password else None
        self._client = CalendarClient(
            settings.url,
            settings.user,
            password,
            timeout_s=settings.timeout_s,
            max_bytes=settings.max_body_bytes,
        )
        if settings.protocol is Protocol.ICS:
            self._shelf = Feed(self._client, self._zone)
        else:
            dav = CalDav(self._client, self._zone, settings.calendars)
            self._shelf = dav
            self._writer = EventWriter(self._client, dav, self._zone)
        self._context = context

    async def listen(self) -> None:
        """Look again and again, and fire what is due meanwhile, until cancelled."""
        context, shelf = self._started()
        state = await self._begin(await shelf.look())
        slept_s, away_s = 0.0, 0.0
        while True:
            state = await self._fire(state)
            pause_s = self._pause_s(self._settings.poll_s - slept_s)
            await context.sleep(pause_s)
            slept_s += pause_s
            if slept_s < self._settings.poll_s:
                continue
            try:
                look = await shelf.look()
            except ConnectorAuthFailedError:
                raise
            except ConnectorNotReadyError as error:
                # What is known goes on to be fired while the server is away for a while.
                away_s += slept_s
                if away_s > AWAY_S:
                    raise
                extra = {"source": self._source, "why": str(error)}
                context.log.warning("calendar.away", extra=extra)
            else:
                away_s, self._heard_at = 0.0, context.now()
                state = await self._tell(state, look)
            slept_s = 0.0

    async def stop(self, timeout_s: float) -> None:
        """Close the client; a question under way is cut."""
        client, self._client, self._shelf, self._writer = self._client, None, None, None
        if client is not None:
            async with asyncio.timeout(timeout_s):
                await client.close()

    async def send(self, effect: Effect) -> Receipt:
        """Make an event once; see :class:`EventWriter` for what it raises."""
        context, _ = self._started()
        if self._writer is None:
            raise PermanentSendError("A feed can't be written to")
        return await self._writer.send(effect, context.now())

    def remarks(self, trigger: Trigger) -> tuple[tuple[str, str], ...]:
        """Say what stands in the way of a meeting that another source tells of: a mail."""
        return self._teller().remarks(trigger, self._calendar)

    async def agenda(self, since: datetime, until: datetime) -> Sequence[Appointment]:
        """Return what takes up the user's time, as of the last look.

        Raises:
            ConnectorNotReadyError: the calendar was not read yet.
        """
        if not self._is_read:
            raise ConnectorNotReadyError("The calendar was not read yet")
        zone, own = self._zone, self._settings.own
        found = await asyncio.to_thread(
            lambda: conflicts(self._calendar, since, until, zone=zone, mine=own)
        )
        return tuple(
            Appointment(
                since=one.start,
                until=one.end,
                title=one.event.summary,
                thread=thread(one.event.uid),
            )
            for one in found
        )

    def capabilities(self) -> Capabilities:
        """Say what this connector can do."""
        writes = self._settings.protocol is Protocol.CALDAV
        places = (KIND,) if writes else ()
        return Capabilities(listens=True, remarks=True, agenda=True, destinations=places)

    def health(self) -> Health:
        """Say when the calendar was last read."""
        return Health(heard_at=self._heard_at, gap=self._gap)

    # -------------------------------------------------------------- what is told
    async def _begin(self, look: Look | None) -> State:
        """Go on from the cursor: what changed since is told, late. At the very first, nothing."""
        context, _ = self._started()
        now = self._heard_at = context.now()
        look = look or Look(copies={})
        stored = await context.cursor()
        state = self._decoded(stored) if stored is not None else None
        if state is None:
            self._take(look)
            state = State(settled=now, known=snapshot(look, now, self._zone))
            await context.emit((), cursor=state.encode())
            return state
        return await self._tell(state, look, catching_up=True)

    def _decoded(self, cursor: str) -> State | None:
        try:
            return decode(cursor)
        except CursorLostError as error:
            self._gap = "The calendar's cursor was lost: what changed before is not told"
            extra = {"source": self._source, "why": str(error)}
            self._started()[0].log.warning("calendar.cursor_lost", extra=extra)
            return None

    async def _tell(self, state: State, look: Look | None, *, catching_up: bool = False) -> State:
        """Tell what changed, in one transaction with the cursor that covers it."""
        if look is None:
            return state
        context, _ = self._started()
        if not catching_up:  # what was due by the calendar as it was, before it changes
            state = await self._fire(state)
        now = context.now()
        self._take(look)
        changes, known = await asyncio.to_thread(differences, state.known, look, now, self._zone)
        told = await asyncio.to_thread(self._teller().changes, changes, now, self._calendar)
        if catching_up:
            told = [late(trigger) for trigger in told]
        if known != state.known:
            # A moment that an event would have had before it was there is not fired.
            settled = state.settled if catching_up else max(state.settled, now)
            state = State(settled=settled, known=known)
            await context.emit(told, cursor=state.encode())
        return state

    def _take(self, look: Look) -> None:
        self._copies = tuple(look.copies.values())
        self._calendar = series(event for copy in self._copies for event in copy.events)
        self._is_read = True
        self._ahead_until = None
        for trouble in look.troubles[:20]:
            extra = {"source": self._source, "why": trouble}
            self._started()[0].log.warning("calendar.broken", extra=extra)
        if look.troubles:
            self._gap = f"{len(look.troubles)} parts can't be read: {look.troubles[0][:200]}"

    async def _fire(self, state: State) -> State:
        """Fire what became due, in one transaction with the mark that covers it."""
        context, _ = self._started()
        now = context.now()
        if state.settled - now > SET_BACK:
            context.log.warning("calendar.clock_set_back", extra={"source": self._source})
            state, self._ahead_until = replace(state, settled=now), None
        if self._ahead_until is None or now >= self._ahead_until:
            await self._look_ahead(max(state.settled, now - FORGETS), now)
        due = [each for each in self._ahead if state.settled < each.at <= now]
        if not due:
            return state
        self._ahead = [each for each in self._ahead if each.at > now]
        teller = self._teller()
        told = [teller.moment(each, now) for each in due if not is_over(each, now)]
        if len(told) < len(due):
            extra = {"source": self._source, "count": len(due) - len(told)}
            context.log.info("calendar.moments_over", extra=extra)
        state = replace(state, settled=now)
        await context.emit(told, cursor=state.encode())
        return state

    async def _look_ahead(self, settled: datetime, now: datetime) -> None:
        """Compute the moments of the next days; done anew each day, and after each change."""
        span = Span(since=settled, until=now + timedelta(days=self._settings.window_days))
        self._ahead = await asyncio.to_thread(
            upcoming, self._copies, span, self._settings, self._zone
        )
        self._ahead_until = now + timedelta(days=1)

    def _pause_s(self, until_look_s: float) -> float:
        now = self._started()[0].now()
        due_s = min(((each.at - now).total_seconds() for each in self._ahead), default=until_look_s)
        return max(min(until_look_s, due_s, LOOK_AT_CLOCK_S), 0.0)

    def _teller(self) -> Teller:
        return Teller(source=self._source, settings=self._settings, zone=self._zone)

    def _started(self) -> tuple[ConnectorContext, Shelf]:
        if self._context is None or self._shelf is None:
            raise ConnectorNotReadyError("The source is not started")
        return self._context, self._shelf
