"""Listing: what no webhook brought, and what was said around a comment.

GitHub gives a delivery up after ten seconds and does not try again: what is missing is read by the
feeds, from a moment on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from upright.api import Message, Trigger
from upright.kit.payload import Json
from upright_github.event import account
from upright_github.feeds import Feeds, Shape, Span

OVERLAP: Final = timedelta(minutes=2)  # our clock and GitHub's differ; what comes twice is refused
NEAR_LINES: Final = 20
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line of a file; None: nobody knows which."""

    path: str
    line: int | None


class Listing:
    """Reads what happened in repositories."""

    def __init__(self, feeds: Feeds) -> None:
        self._feeds = feeds

    async def missed(
        self, repositories: tuple[str, ...], since: str, until: datetime
    ) -> AsyncIterator[Trigger]:
        """Yield what happened since in all repositories, oldest first.

        All of it is read before the first is told: a moment is only reached once everything before
        it is stored.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: GitHub can't be reached, or a limit holds.
        """
        began = datetime.fromisoformat(since) - OVERLAP
        found: list[Trigger] = []
        self._feeds.begin()
        span = Span(began=began, until=until)
        for repository in repositories:
            for row in await self._feeds.rows(repository, began, fresh=True):
                found += await self._feeds.told(repository, row, span)
        for trigger in sorted(found, key=lambda one: one.occurred_at or _NEVER):
            yield trigger

    async def around(self, repository: str, number: str) -> list[Message]:
        """Return the comments of an issue or a pull request, oldest first."""
        found = await self._feeds.every(f"/repos/{repository}/issues/{number}/comments")
        return [self._message(Json(shape, "comment")) for shape in found]

    async def beside(self, repository: str, number: str, trigger: Trigger) -> list[Message]:
        """Return what was said on a line's thread and near that line, oldest first.

        Near is the same file, at most twenty lines away; of a line that is gone, where it was.
        """
        facts = dict(trigger.context.facts)
        found = await self._feeds.every(f"/repos/{repository}/pulls/{number}/comments")
        root = facts.get("in_reply_to") or facts.get("native_id", "").rpartition(":")[2]
        line = facts.get("line") or facts.get("original_line", "")
        own = _Line(path=facts.get("path", ""), line=int(line) if line.isdigit() else None)
        near = [Json(shape, "comment") for shape in found if _belongs(shape, root, own)]
        near.sort(key=lambda one: (one.moment("created_at") or _NEVER, one.number("id")))
        said = [self._message(one) for one in near]
        return [replace(one, id=f"review_comment:{one.id}") for one in said]

    def _message(self, comment: Json) -> Message:
        return Message(
            id=str(comment.number("id")),
            author=account(self._feeds.me, comment.maybe_part("user")),
            text=comment.maybe_text("body"),
            at=comment.moment("created_at"),
        )


def _belongs(shape: Shape, root: str, own: _Line) -> bool:
    """Tell whether a comment is on the same thread, or near the same line."""
    if root and root in {str(shape.get("id")), str(shape.get("in_reply_to_id"))}:
        return True
    line = shape.get("line") or shape.get("original_line")
    if shape.get("path") != own.path or own.line is None or not isinstance(line, int):
        return False
    return abs(line - own.line) <= NEAR_LINES
