"""CalDAV: finding the calendars, and what changed in them.

A sync token says what changed since the last look. When it is refused, or the server knows no such
thing, all ETags are compared instead: either way the same copies come out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final
from urllib.parse import urljoin
from zoneinfo import ZoneInfo

from upright.api import ConnectorNotReadyError
from upright_calendar.client import Answer, CalendarClient
from upright_calendar.copies import Copy, Found, Look, grouped, parsed, troubles_of
from upright_calendar.dav import (
    CAL,
    DAV,
    DavError,
    Multistatus,
    Resource,
    encoded,
    multiget,
    path_of,
    propfind,
    read,
    sync_collection,
)

BATCH: Final = 50
MAX_PAGES: Final = 200
MAX_RESOURCES: Final = 50_000
_XML: Final = {"Content-Type": "application/xml; charset=utf-8"}
_TYPE: Final = f"{DAV}resourcetype"
_PRINCIPAL: Final = f"{DAV}current-user-principal"
_HOME: Final = f"{CAL}calendar-home-set"
_COMPONENTS: Final = f"{CAL}supported-calendar-component-set"


@dataclass(slots=True, kw_only=True)
class Held:
    """One calendar on the server: what is known of it."""

    path: str
    name: str
    token: str = ""
    syncs: bool = True
    etags: dict[str, str] = field(default_factory=dict)
    copies: dict[str, Copy] = field(default_factory=dict)
    unread: dict[str, tuple[str, ...]] = field(default_factory=dict)


class CalDav:
    """The calendars of one user; keys are the paths of their resources."""

    def __init__(self, client: CalendarClient, zone: ZoneInfo, only: Collection[str]) -> None:
        self._client = client
        self._zone = zone
        self._only = frozenset(only)
        self._calendars: list[Held] | None = None

    async def find(self) -> Found:
        """Find the calendars."""
        found = await self._discover()
        names = tuple(each.name for each in found)
        return Found(summary=f"{len(names)} calendars: {', '.join(names)}", names=names)

    async def home(self, name: str = "") -> str:
        """Return the path of a calendar, by its name or path; of the first one without.

        Raises:
            ConnectorNotReadyError: the server can't be asked, or has no such calendar.
        """
        for each in await self._known():
            if name in {"", each.name, each.path}:
                return each.path
        problem = f"There is no calendar {name!r}"
        raise ConnectorNotReadyError(problem)

    async def look(self) -> Look | None:
        """Ask each calendar what changed; None when nothing did."""
        known = await self._known()
        changed = [await self._update(each) for each in known]
        if not any(changed):
            return None
        copies = {path: copy for each in known for path, copy in each.copies.items()}
        unread = [(path, why) for each in known for path, why in each.unread.items()]
        return Look(
            copies=copies,
            unread=frozenset(path for path, _ in unread),
            troubles=tuple(one for _, why in unread for one in why),
        )

    # -------------------------------------------------------------- finding
    async def _known(self) -> list[Held]:
        if self._calendars is None:
            self._calendars = await self._discover()
        return self._calendars

    async def _discover(self) -> list[Held]:
        start = await self._first()
        if start.has(_TYPE, f"{CAL}calendar"):
            return [_calendar(start)]
        principal = start.href(_PRINCIPAL)
        if not principal:
            raise ConnectorNotReadyError("The server names no principal for this user")
        (who,) = await self._properties(principal, [_HOME], depth=0)
        homes = list(who.hrefs(_HOME))
        if not homes:
            raise ConnectorNotReadyError("The server names no home of calendars for this user")
        found = [
            _calendar(each)
            for home in homes
            for each in await self._properties(
                home, [_TYPE, f"{DAV}displayname", _COMPONENTS], depth=1
            )
            if _holds_events(each)
        ]
        wanted = [each for each in found if not self._only or {each.name, each.path} & self._only]
        if not wanted:
            problem = f"None of these calendars is wanted: {', '.join(c.name for c in found)}"
            raise ConnectorNotReadyError(problem)
        return wanted

    async def _first(self) -> Resource:
        """Ask the address of the settings, then the well-known one (RFC 6764)."""
        names = [_PRINCIPAL, _TYPE, f"{DAV}displayname"]
        why = "the server answers with no properties"
        for url in (self._client.url, urljoin(self._client.url, "/.well-known/caldav")):
            try:
                first = next(iter(await self._properties(url, names, depth=0)), None)
            except _RefusedError as error:
                why = str(error)
                continue
            if first and (first.href(_PRINCIPAL) or first.has(_TYPE, f"{CAL}calendar")):
                return first
        problem = f"No calendar was found: {why}"
        raise ConnectorNotReadyError(problem)

    async def _properties(
        self, url: str, names: Sequence[str], *, depth: int
    ) -> tuple[Resource, ...]:
        headers = {**_XML, "Depth": str(depth)}
        return (await self._ask("PROPFIND", url, propfind(names), headers)).resources

    # -------------------------------------------------------------- what changed
    async def _update(self, calendar: Held) -> bool:
        """Bring a calendar's copies up to date; tell whether any changed."""
        changed, gone = await self._changes(calendar)
        for path in gone:
            calendar.etags.pop(path, None)
            calendar.copies.pop(path, None)
            calendar.unread.pop(path, None)
        wanted = [path for path, etag in changed.items() if calendar.etags.get(path) != etag]
        for batch in _batches(wanted):
            for resource in await self._fetch(calendar, batch):
                await self._take(calendar, resource)
        return bool(gone or wanted)

    async def _changes(self, calendar: Held) -> tuple[dict[str, str], set[str]]:
        """Return the ETags of what changed, and the paths of what is gone.

        The token moves on only after both are known: a failure half way is asked for again.
        """
        if calendar.syncs:
            try:
                return await self._since_token(calendar)
            except _RefusedError as refused:
                # An old token is forgotten by servers in many ways; without one it is the report
                # itself that is not known.
                calendar.syncs = bool(calendar.token) or refused.status >= 500
                calendar.token = ""
        listed = await self._properties(encoded(calendar.path), [f"{DAV}getetag", _TYPE], depth=1)
        there = {
            each.path: each.text(f"{DAV}getetag")
            for each in islice(listed, MAX_RESOURCES)
            if not each.has(_TYPE, f"{DAV}collection") and each.text(f"{DAV}getetag")
        }
        return there, calendar.etags.keys() - there.keys()

    async def _since_token(self, calendar: Held) -> tuple[dict[str, str], set[str]]:
        changed, gone, token = dict[str, str](), set[str](), calendar.token
        first = not token
        for _ in range(MAX_PAGES):
            headers = {**_XML, "Depth": "0"}
            said = await self._ask(
                "REPORT", encoded(calendar.path), sync_collection(token), headers
            )
            more = False
            for each in said.resources:
                if path_of(calendar.path).rstrip("/") == each.path.rstrip("/"):
                    more = more or each.status == 507
                elif each.status in {404, 410}:
                    gone.add(each.path)
                    changed.pop(each.path, None)
                elif etag := each.text(f"{DAV}getetag"):
                    changed[each.path] = etag
                    gone.discard(each.path)
            token = said.token or token
            if not more:
                break
        calendar.token = token
        if first:  # everything was told: what was not is gone
            gone |= calendar.etags.keys() - changed.keys()
        return changed, gone & calendar.etags.keys()

    async def _fetch(self, calendar: Held, paths: Sequence[str]) -> tuple[Resource, ...]:
        headers = {**_XML, "Depth": "1"}
        said = await self._ask("REPORT", encoded(calendar.path), multiget(paths), headers)
        return said.resources

    async def _take(self, calendar: Held, resource: Resource) -> None:
        text = resource.text(f"{CAL}calendar-data")
        if resource.status in {404, 410}:  # gone between two questions
            calendar.copies.pop(resource.path, None)
            return
        held = await parsed(text.encode(), self._zone)
        calendar.etags[resource.path] = resource.text(f"{DAV}getetag")
        series = grouped(held)
        calendar.unread.pop(resource.path, None)
        if series:
            uid, events = next(iter(series.items()))
            calendar.copies[resource.path] = Copy(
                uid=uid, events=events, raw=text.encode(), place=calendar.name
            )
        elif held.broken:  # a good copy that was known stands
            troubles = tuple(troubles_of(held, resource.path))
            calendar.unread[resource.path] = troubles
        else:  # a task or a journal entry
            calendar.copies.pop(resource.path, None)

    async def _ask(
        self, method: str, url: str, body: bytes, headers: dict[str, str]
    ) -> Multistatus:
        answer = await self._client.ask(method, url, body, headers)
        if answer.status != 207:
            raise _RefusedError(answer, method)
        try:
            return read(answer.body)
        except DavError as error:
            problem = f"{method} of {answer.url}: {error}"
            raise ConnectorNotReadyError(problem) from error


class _RefusedError(ConnectorNotReadyError):
    """A question was refused."""

    def __init__(self, answer: Answer, method: str) -> None:
        super().__init__(f"{method} of {answer.url} is refused (HTTP {answer.status})")
        self.status = answer.status


def _calendar(resource: Resource) -> Held:
    path = resource.path
    name = resource.text(f"{DAV}displayname") or path.rstrip("/").rpartition("/")[2]
    return Held(path=path, name=name)


def _holds_events(resource: Resource) -> bool:
    if not resource.has(_TYPE, f"{CAL}calendar"):
        return False
    components = resource.found.get(_COMPONENTS)
    named = [each.get("name", "").upper() for each in components] if components is not None else []
    return not named or "VEVENT" in named


def _batches(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(paths), BATCH):
        yield paths[begin : begin + BATCH]
