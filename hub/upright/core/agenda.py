"""Agenda: what takes up time, as the calendars tell it, and how a model is shown it.

Titles are other people's words, and private: they are shown when they are asked for, and taint
then. Times alone are nobody's words.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from upright.api import Appointment

MOST: Final = 50
MAX_TITLE_CHARS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda:
    """Appointments by their start; ``told_by`` are the sources that told, ``silent`` the others."""

    appointments: tuple[Appointment, ...] = ()
    told_by: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


def merged(parts: list[tuple[str, tuple[Appointment, ...] | None]]) -> Agenda:
    """Join what each source told; None where it could not."""
    found = (one for _, told in parts for one in told or ())
    return Agenda(
        appointments=tuple(sorted(found, key=lambda one: (one.since, one.until, one.thread))),
        told_by=tuple(source for source, told in parts if told is not None),
        silent=tuple(source for source, told in parts if told is None),
    )


def told(agenda: Agenda, *, titles: bool) -> dict[str, Any]:
    """Return what the model reads. ``free`` is there only where every calendar was heard."""
    shown = agenda.appointments[:MOST]
    body: dict[str, Any] = {
        "taken": [_shown(one, titles=titles) for one in shown],
        "told_by": list(agenda.told_by),
    }
    if len(shown) < len(agenda.appointments):
        body["more"] = len(agenda.appointments) - len(shown)
    if agenda.silent:
        body["could_not_tell"] = list(agenda.silent)
    if agenda.appointments or (agenda.told_by and not agenda.silent):
        body["free"] = not agenda.appointments
    return body


def _shown(one: Appointment, *, titles: bool) -> dict[str, str]:
    shown = {"since": _iso(one.since), "until": _iso(one.until)}
    return {**shown, "title": one.title[:MAX_TITLE_CHARS]} if titles else shown


def _iso(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
