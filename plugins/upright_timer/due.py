"""Due: which runs of a line are to be fired now, and up to when it is settled then."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Final

from upright.api import Actor, Address, Channel, Content, Context, Trigger
from upright.kit.late import late
from upright_timer.schedule import Every, Schedule, times
from upright_timer.settings import Misfire, TimerLine
from upright_timer.state import Mark

MAX_COUNTED: Final = 10_000  # missed runs; more are not counted one by one
MAX_RUN_ALL: Final = 100
LOOK_BACK: Final = timedelta(days=2)  # where the newest of very many missed runs is looked for
SET_BACK: Final = timedelta(hours=3)  # further than this, cron begins anew (as Debian's does)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run that is to be fired: when it was due, and how many before it were missed."""

    due: datetime
    missed: int = 0
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A line with its schedule and the name of its zone."""

    line: TimerLine
    schedule: Schedule
    zone: tzinfo

    def runs(self, mark: Mark, now: datetime) -> tuple[list[Run], Mark]:
        """Return what is to be fired now, oldest first, and the mark that covers it."""
        mark = self._set_back(mark, now)
        passed, count = self._passed(mark, now)
        if not passed:
            return [], mark
        runs: list[Run] = []
        if self.line.misfire is Misfire.RUN_ALL:
            runs = [self._run(due, now) for due in passed]
            runs[0] = replace(runs[0], missed=count - len(passed))
        elif self.line.misfire is Misfire.RUN_ONCE or not self._is_late(passed[-1], now):
            runs = [replace(self._run(passed[-1], now), missed=count - 1)]
        return runs, replace(mark, done=passed[-1])

    def next(self, mark: Mark) -> datetime | None:
        """Return when the next run is to be fired, its jitter included."""
        due = self.schedule.after(mark.done, mark.anchor)
        return due and due + self.jitter(due)

    def jitter(self, due: datetime) -> timedelta:
        """Return by how much a run is put off: of the name and the time, so always the same."""
        told = hashlib.sha256(f"{self.line.name}\n{_iso(due)}".encode()).digest()
        return timedelta(seconds=self.line.jitter_s * int.from_bytes(told[:6]) / 2**48)

    def trigger(self, run: Run, mark: Mark) -> Trigger:
        """Make the trigger of a run."""
        line, due = self.line, _iso(run.due)
        told = {
            "timer": line.name,
            "due": due,
            "when": line.when,
            "due_local": f"{run.due.astimezone(self.zone):%Y-%m-%d %H:%M:%S} ({self.zone})",
            "missed": _counted(run.missed),
            "agent": line.agent,
        }
        made = Trigger(
            kind="timer.due",
            channel=Channel.TIMER,
            actor=Actor(id=line.by, name=line.name),
            content=Content(title=line.title or line.name, text=line.text, urgent=line.urgent),
            context=Context(
                thread=f"timer:{line.name}",
                address=Address.DIRECT,
                facts=tuple((name, value) for name, value in told.items() if value),
            ),
            dedupe=(f"timer:{line.name}:{due}:{mark.era}",),
            occurred_at=run.due,
        )
        return late(made) if run.late else made

    def _set_back(self, mark: Mark, now: datetime) -> Mark:
        """Return a line's mark when the clock shows an earlier time than it is settled up to.

        An interval goes on at once. A line of cron waits for the time to come again, as long as
        that is hours at most.
        """
        ahead = mark.done - now
        limit = timedelta() if isinstance(self.schedule, Every) else SET_BACK
        return mark.again(now) if ahead > limit else mark

    def _passed(self, mark: Mark, now: datetime) -> tuple[list[datetime], int]:
        """Return the newest runs that are due, oldest first, and how many there were."""
        newest: deque[datetime] = deque(maxlen=MAX_RUN_ALL)
        count = 0
        for due in islice(times(self.schedule, mark.done, mark.anchor), MAX_COUNTED):
            if due + self.jitter(due) > now:
                return list(newest), count
            newest.append(due)
            count += 1
        since = max(now - LOOK_BACK, mark.done)
        for due in islice(times(self.schedule, since, mark.anchor), 10 * MAX_COUNTED):
            if due + self.jitter(due) > now:
                break
            newest.append(due)
        return sorted(set(newest)), count

    def _is_late(self, due: datetime, now: datetime) -> bool:
        return (now - due - self.jitter(due)).total_seconds() > self.line.grace_s

    def _run(self, due: datetime, now: datetime) -> Run:
        return Run(due=due, late=self._is_late(due, now))


def _counted(missed: int) -> str:
    if missed >= MAX_COUNTED - 1:
        return f"{missed}+"
    return str(missed) if missed else ""


def _iso(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
