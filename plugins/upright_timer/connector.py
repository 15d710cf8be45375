"""The connector of one timer source: it waits, looks at the wall clock, and fires once."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from upright.api import (
    Capabilities,
    ConnectorContext,
    ConnectorNotReadyError,
    Effect,
    Health,
    Neighbours,
    PermanentSendError,
    Probe,
    Receipt,
    Trigger,
)
from upright.kit.quiet import Quiet
from upright_timer.due import Timer
from upright_timer.schedule import upcoming
from upright_timer.settings import TimerSettings
from upright_timer.state import CursorLostError, Mark, decode, encode

LOOK_EVERY_S: Final = 60.0  # so that a clock that was set back is noticed soon
PREVIEWED: Final = 5


class TimerConnector(Quiet):
    """One source: its lines, each with a mark up to which it is settled."""

    def __init__(self, source: str, settings: TimerSettings) -> None:
        zone = ZoneInfo(settings.zone)
        self._source = source
        self._version = {line.name: line.version(settings.zone) for line in settings.lines}
        self._timers = {
            line.name: Timer(
                line=line,
                schedule=line.schedule(zone),
                zone=ZoneInfo(line.zone) if line.zone else zone,
            )
            for line in settings.lines
        }
        self._context: ConnectorContext | None = None
        self._looked_at: datetime | None = None
        self._gap = ""

    async def validate(self) -> Probe:
        """Say when each line is due next."""
        now, said = self._started().now(), list[str]()
        for name, timer in self._timers.items():
            due = upcoming(timer.schedule, now, now, count=PREVIEWED)
            times = ", ".join(f"{each.astimezone(timer.zone):%Y-%m-%d %H:%M %Z}" for each in due)
            said.append(f"{name}: {'paused' if timer.line.paused else times or 'never again'}")
        return Probe(ok=True, summary="; ".join(said))

    async def start(self, context: ConnectorContext) -> None:
        """Remember the context."""
        self._context = context

    async def listen(self) -> None:
        """Fire what is due, for ever; a restart goes on where the cursor stands."""
        context = self._started()
        stored = await context.cursor()
        known = self._known(stored)
        marks = self._marks(known, context.now())
        if stored is None or marks != known:
            await context.emit((), cursor=encode(marks))
        while True:
            marks = await self._look(marks)
            await context.sleep(self._pause_s(marks))

    async def stop(self, timeout_s: float) -> None:
        """Nothing is open."""

    async def send(self, effect: Effect) -> Receipt:
        """Refuse: nobody reads what a timer is told."""
        reason = f"A timer takes no answers: {effect.destination.kind}"
        raise PermanentSendError(reason)

    async def neighbours(self, trigger: Trigger, before: int, after: int) -> Neighbours:
        """Say that there is no talk around a timer."""
        del trigger, before, after
        return Neighbours(whole=True)

    def capabilities(self) -> Capabilities:
        """Say what this connector can do."""
        return Capabilities(listens=True)

    def health(self) -> Health:
        """Say when it last looked at the clock."""
        return Health(heard_at=self._looked_at, gap=self._gap)

    # -------------------------------------------------------------- what is due
    def _known(self, cursor: str | None) -> dict[str, Mark]:
        if cursor is None:
            return {}
        try:
            return decode(cursor)
        except CursorLostError as error:
            self._gap = "The timers' cursor was lost: runs missed before are not fired"
            extra = {"source": self._source, "why": str(error)}
            self._started().log.warning("timer.cursor_lost", extra=extra)
            return {}

    def _marks(self, known: dict[str, Mark], now: datetime) -> dict[str, Mark]:
        """Return the marks of today's lines.

        A line that is new, means other times now, or was paused begins now: nothing of the past is
        fired for it.
        """
        marks: dict[str, Mark] = {}
        for name, timer in self._timers.items():
            mark, version = known.get(name), self._version[name]
            if timer.line.paused:
                continue
            if mark is None or mark.version != version:
                era = mark.era + 1 if mark else 0
                mark = Mark(version=version, anchor=now, done=now, era=era)
            marks[name] = mark
        return marks

    async def _look(self, marks: dict[str, Mark]) -> dict[str, Mark]:
        """Fire what is due, all in one transaction with the cursor that covers it."""
        context = self._started()
        now = self._looked_at = context.now()
        after, fired = dict[str, Mark](), list[Trigger]()
        for name, mark in marks.items():
            timer = self._timers[name]
            runs, after[name] = timer.runs(mark, now)
            fired += [timer.trigger(run, after[name]) for run in runs]
            if after[name].era != mark.era:
                extra = {"source": self._source, "timer": name}
                context.log.warning("timer.clock_set_back", extra=extra)
        if after != marks:
            fired.sort(key=lambda trigger: (trigger.occurred_at or now, trigger.dedupe))
            await context.emit(fired, cursor=encode(after))
        return after

    def _pause_s(self, marks: dict[str, Mark]) -> float:
        """Return how long to sleep: until the next run, and never long.

        Waiting for a moment of the wall clock would wait for hours when that is set back.
        """
        now = self._started().now()
        ahead = (self._timers[name].next(mark) for name, mark in marks.items())
        left_s = (max((due - now).total_seconds(), 0.0) for due in ahead if due is not None)
        return min([LOOK_EVERY_S, *left_s])

    def _started(self) -> ConnectorContext:
        if self._context is None:
            raise ConnectorNotReadyError("The source is not started")
        return self._context
