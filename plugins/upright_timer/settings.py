"""Settings of one timer source."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from upright_timer.schedule import Schedule, parse

MAX_LINES: Final = 200
MAX_JITTER_S: Final = 86_400.0


class Misfire(StrEnum):
    """What becomes of the times that passed while the hub was away or asleep."""

    RUN_ONCE = "run_once"
    RUN_ALL = "run_all"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerLine:
    """One of ``[[sources.NAME.lines]]``.

    ``when``: a cron line, ``every 15 minutes``, ``after 20 minutes`` or ``at 2026-12-24 18:00``, in
    ``zone`` (empty: the source's). ``title`` and ``text`` become the trigger's; ``agent`` is a fact
    for rules. ``by`` is the id under which the line speaks: whoever has ``NAME:ID`` among their ids
    in the configuration gives it their authority. Later than ``grace_s`` a run is a missed one, of
    which ``misfire`` decides. ``jitter_s`` spreads the runs, the same way each time.
    """

    name: str
    when: str
    zone: str = ""
    title: str = ""
    text: str = ""
    agent: str = ""
    by: str = "timer"
    urgent: bool = False
    paused: bool = False
    misfire: Misfire = Misfire.RUN_ONCE
    jitter_s: float = 0.0
    grace_s: float = 300.0

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("name must not be empty")
        if not 0 <= self.jitter_s <= MAX_JITTER_S:
            raise ValueError("jitter_s must be between 0 and 86400")
        if self.grace_s < 1:
            raise ValueError("grace_s must be 1 or more")
        self.schedule(_zone(self.zone or "UTC"))

    def schedule(self, default: tzinfo) -> Schedule:
        """Return when it is due."""
        return parse(self.when, _zone(self.zone) if self.zone else default)

    def version(self, default: str) -> str:
        """Return what changes when the line means other times than before."""
        told = f"{self.when}\n{self.zone or default}"
        return hashlib.sha256(told.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerSettings:
    """Keys of ``[sources.NAME]`` with ``connector = "timer"``; ``zone`` is an IANA name.

    Raises:
        ValueError: a value that can't work, named by its key.
    """

    lines: tuple[TimerLine, ...]
    zone: str = "UTC"

    def __post_init__(self) -> None:
        _zone(self.zone)
        names = [line.name for line in self.lines]
        if not 0 < len(names) <= MAX_LINES:
            raise ValueError("lines must be between 1 and 200")
        if twice := next((name for name in names if names.count(name) > 1), ""):
            problem = f"two lines are called {twice!r}"
            raise ValueError(problem)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        problem = f"zone {name!r} is no zone; take a name such as Europe/Lisbon"
        raise ValueError(problem) from error
