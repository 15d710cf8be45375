"""Writer: an event is made once; its UID and its path follow from the idempotency key.

``If-None-Match: *`` lets nothing be overwritten: a second try finds the first one there (B15.2).
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from urllib.parse import quote

from upright.api import (
    ConnectorNotReadyError,
    Effect,
    PermanentSendError,
    Receipt,
    RetryableSendError,
    UnknownSendError,
)
from upright.kit.calendar.lines import escape
from upright.kit.calendar.moments import instant
from upright_calendar.caldav import CalDav
from upright_calendar.client import Answer, CalendarClient, LostError
from upright_calendar.dav import encoded

KIND: Final = "event"
DOMAIN: Final = "upright.invalid"
_UID: Final = re.compile(rf"upright-[0-9a-f]{{32}}@{re.escape(DOMAIN)}")
_LINE: Final = 73  # octets, so that a fold and its blank fit into 75
_TYPE: Final = {"Content-Type": "text/calendar; charset=utf-8", "If-None-Match": "*"}


def uid_of(key: str) -> str:
    """Return the UID of an effect's event."""
    return f"upright-{hashlib.sha256(key.encode()).hexdigest()[:32]}@{DOMAIN}"


def is_ours(uid: str) -> bool:
    """Tell whether a UID is one that we make."""
    return _UID.fullmatch(uid) is not None


class EventWriter:
    """Makes events in one user's calendars."""

    def __init__(self, client: CalendarClient, dav: CalDav, zone: tzinfo) -> None:
        self._client = client
        self._dav = dav
        self._zone = zone

    async def send(self, effect: Effect, now: datetime) -> Receipt:
        """Make an event: the first line of the text is its title, the rest says more.

        The destination's address holds ``starts``, and ``ends`` or ``minutes``; ``calendar`` and
        ``location`` where wanted.

        Raises:
            RetryableSendError: it is certainly not there.
            PermanentSendError: the destination says no time, or the server refuses it.
            UnknownSendError: it may be there, and looking did not settle it.
        """
        where = dict(effect.destination.address)
        if effect.destination.kind != KIND:
            problem = f"No destination of a calendar: {effect.destination.kind}"
            raise PermanentSendError(problem)
        uid = uid_of(effect.idempotency_key)
        body = compose(uid, effect.text, where, now=now, zone=self._zone)
        try:
            home = await self._dav.home(where.get("calendar", ""))
        except ConnectorNotReadyError as error:
            raise RetryableSendError(str(error)) from error
        path = f"{encoded(home).rstrip('/')}/{quote(uid)}.ics"
        try:
            answer = await self._client.ask("PUT", path, body, _TYPE)
        except LostError as error:
            return await self._look(path, uid, str(error))
        except ConnectorNotReadyError as error:
            raise RetryableSendError(str(error), after_s=error.retry_after_s) from error
        return await self._read(answer, path, uid)

    async def _read(self, answer: Answer, path: str, uid: str) -> Receipt:
        if answer.status in {200, 201, 204}:
            return Receipt(provider_id=uid, url=answer.url)
        if answer.status == 412:  # an earlier try had worked
            return Receipt(provider_id=uid, url=answer.url, found=True)
        if answer.status >= 500:
            return await self._look(path, uid, f"HTTP {answer.status}")
        problem = f"The server refuses the event (HTTP {answer.status})"
        raise PermanentSendError(problem)

    async def _look(self, path: str, uid: str, why: str) -> Receipt:
        """See whether it is there after all."""
        try:
            answer = await self._client.ask("GET", path)
        except ConnectorNotReadyError as error:
            problem = f"{why}; then looking failed, too: {error}"
            raise UnknownSendError(problem) from error
        if answer.status == 200:
            return Receipt(provider_id=uid, url=answer.url, found=True)
        if answer.status == 404:
            problem = f"{why}; it is not there (yet)"
            raise UnknownSendError(problem)
        problem = f"{why}; looking said HTTP {answer.status}"
        raise UnknownSendError(problem)


def compose(uid: str, text: str, where: dict[str, str], *, now: datetime, zone: tzinfo) -> bytes:
    """Write an event.

    Raises:
        PermanentSendError: it is not said when it is.
    """
    starts = _at(where.get("starts", ""), "starts", zone)
    if "ends" in where:
        ends = _at(where["ends"], "ends", zone)
    else:
        minutes = where.get("minutes", "30")
        if not (minutes.isascii() and minutes.isdigit() and 0 < int(minutes) <= 100_000):
            raise PermanentSendError("minutes must be a whole number")
        ends = starts + timedelta(minutes=int(minutes))
    if ends <= starts:
        raise PermanentSendError("The event ends before it starts")
    title, _, more = text.strip().partition("\n")
    if not title.strip():
        raise PermanentSendError("An event needs a title: the first line of the text")
    lines = [
        *("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Upright//Calendar//EN", "BEGIN:VEVENT"),
        *(f"UID:{uid}", f"DTSTAMP:{_spelled(now)}", f"DTSTART:{_spelled(starts)}"),
        *(f"DTEND:{_spelled(ends)}", f"SUMMARY:{escape(title.strip())}"),
        *((f"DESCRIPTION:{escape(more.strip())}",) if more.strip() else ()),
        *((f"LOCATION:{escape(where['location'])}",) if where.get("location") else ()),
        *("END:VEVENT", "END:VCALENDAR"),
    ]
    return b"".join(_folded(line) for line in lines)


def _at(text: str, name: str, zone: tzinfo) -> datetime:
    try:
        return instant(datetime.fromisoformat(text), zone)
    except ValueError as error:
        problem = f"{name} must be a moment such as 2026-06-10T15:00, not {text!r}"
        raise PermanentSendError(problem) from error


def _spelled(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _folded(line: str) -> bytes:
    """Fold a line between characters, never within one."""
    parts, size = list[str](), 0
    for character in line:
        width = len(character.encode("utf-8", "replace"))
        if size + width > _LINE:
            parts.append("\r\n ")
            size = 0
        parts.append(character)
        size += width
    return ("".join(parts) + "\r\n").encode("utf-8", "replace")
