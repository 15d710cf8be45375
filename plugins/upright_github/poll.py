"""Poll: a source without a public address looks at its repositories now and then.

The cursor holds for each repository up to when all is told, and what of the last minutes was told:
GitHub's times are whole seconds, and a change may show a little after its time. While nothing
happens it stays as it is, so that each list is asked by the same address, and answered by 304.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from upright.api import ConnectorContext
from upright.kit.late import late
from upright_github.feeds import Feeds, Row, Span, moment, stamp

OVERLAP: Final = timedelta(minutes=2)


@dataclass(slots=True)
class Mark:
    """How far one repository was told: ``seen`` maps rows near the end to their last change."""

    at: datetime
    seen: dict[str, str] = field(default_factory=dict)

    @property
    def since(self) -> datetime:
        """From when on rows are asked for."""
        return self.at - OVERLAP

    def is_new(self, row: Row) -> bool:
        """Tell whether a row has changed since it was told."""
        return self.seen.get(row.id) != stamp(row.changed_at)

    def span(self, row: Row) -> Span:
        """Return what of a row is still to be told: since it was told, or since we look."""
        told = moment(self.seen.get(row.id))
        began = self.since if told is None else max(told, self.since)
        return Span(began=began, until=row.changed_at, known=told is not None)

    def take(self, rows: list[Row]) -> None:
        """Note rows as told, and forget those that are too old to be asked for again."""
        self.seen |= {row.id: stamp(row.changed_at) for row in rows}
        self.at = max([self.at, *(row.changed_at for row in rows)])
        oldest = stamp(self.since)
        self.seen = {row: at for row, at in self.seen.items() if at >= oldest}


class Poller:
    """Looks every ``every_s`` seconds, or as seldom as GitHub asks."""

    def __init__(self, feeds: Feeds, context: ConnectorContext, repositories: tuple[str, ...]):
        self._feeds = feeds
        self._context = context
        self._repositories = repositories
        self.heard_at: datetime | None = None
        self.gap = ""

    async def run(self, every_s: float) -> None:
        """Look until cancelled; what is found in the first round came late.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: GitHub can't be reached, or a limit holds.
        """
        marks = self._read(await self._context.cursor())
        catching_up = True
        while True:
            self._feeds.begin()
            for repository in self._repositories:
                await self._look(repository, marks, catching_up=catching_up)
            catching_up = False
            self.heard_at = self._context.now()
            await self._context.sleep(max(every_s, self._feeds.asked_s))

    async def _look(self, repository: str, marks: dict[str, Mark], *, catching_up: bool) -> None:
        mark = marks.get(repository)
        if mark is None:  # the first look at it: what is there already is no news
            marks[repository] = mark = Mark(await self._feeds.now(repository))
            mark.take(await self._feeds.rows(repository, mark.since, fresh=True))
            await self._context.emit((), cursor=_written(marks))
            return
        new = [row for row in await self._feeds.rows(repository, mark.since) if mark.is_new(row)]
        for row in new:
            told = await self._feeds.told(repository, row, mark.span(row))
            mark.take([row])
            await self._context.emit(
                [late(one) if catching_up else one for one in told], cursor=_written(marks)
            )

    def _read(self, cursor: str | None) -> dict[str, Mark]:
        """Read the cursor; one that can't be read means no replay, and a gap that is said."""
        if cursor is None:
            return {}
        try:
            return {name: _mark(each) for name, each in json.loads(cursor).items()}
        except (ValueError, AttributeError, TypeError, KeyError):
            self.gap = "the cursor could not be read: what happened while it was away is not told"
            self._context.log.warning("github.cursor_lost", extra={"why": self.gap})
            return {}


def _mark(found: Mapping[str, object]) -> Mark:
    at, seen = moment(found["at"]), found["seen"]
    if at is None or not isinstance(seen, dict):
        raise ValueError("this is no mark")
    return Mark(at, {str(row): str(when) for row, when in seen.items()})


def _written(marks: Mapping[str, Mark]) -> str:
    told = {name: {"at": stamp(mark.at), "seen": mark.seen} for name, mark in marks.items()}
    return json.dumps(told, separators=(",", ":"))
