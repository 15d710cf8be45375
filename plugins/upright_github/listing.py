"""Listing: what no webhook brought, and what was said around a comment.

GitHub gives a delivery up after ten seconds and does not try again: what is missing is read by the
feeds, from a moment on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Final

from upright.api import Message, Trigger
from upright.kit.payload import Json
from upright_github.event import account
from upright_github.feeds import MAX_PAGES, PER_PAGE, Feeds, Span

OVERLAP: Final = timedelta(minutes=2)  # our clock and GitHub's differ; what comes twice is refused
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


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
        path, said = f"/repos/{repository}/issues/{number}/comments", list[Message]()
        for page in range(1, MAX_PAGES + 1):
            answer = await self._feeds.answer(path, per_page=str(PER_PAGE), page=str(page))
            shapes = answer.value if isinstance(answer.value, list) else []
            said += [self._message(Json(shape, "comment")) for shape in shapes]
            if not answer.has_next:
                break
        return said

    def _message(self, comment: Json) -> Message:
        return Message(
            id=str(comment.number("id")),
            author=account(self._feeds.me, comment.maybe_part("user")),
            text=comment.maybe_text("body"),
            at=comment.moment("created_at"),
        )
