"""Listing: comments that no webhook brought, read by the API as the webhooks would have told them.

GitHub gives a delivery up after ten seconds and does not try again. Each comment becomes the same
trigger, with the same keys, that its webhook makes: what did arrive is refused as a duplicate.

Source: docs.github.com, "List issue comments for a repository".
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorContext,
    ConnectorNotReadyError,
    Message,
    Trigger,
    TriggerRejectedError,
)
from upright.kit.payload import Json
from upright_github import talk
from upright_github.client import Answer, GitHubClient, LostError, NotSentError
from upright_github.event import Event, Identity, account
from upright_github.keys import Place

PER_PAGE: Final = 100
MAX_PAGES: Final = 100
OVERLAP: Final = timedelta(minutes=2)  # our clock and GitHub's differ; what comes twice is refused

Shape = dict[str, Any]


class Listing:
    """Reads what happened in repositories."""

    def __init__(self, client: GitHubClient, me: Identity, context: ConnectorContext) -> None:
        self._client = client
        self._me = me
        self._context = context

    async def comments(
        self, repository: str, since: str, until: datetime
    ) -> AsyncIterator[Trigger]:
        """Yield comments on issues and pull requests, by the time of their last change.

        A comment that was changed after it was made is told twice: as made, and as edited.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: GitHub can't be reached, or a limit holds.
        """
        began = datetime.fromisoformat(since) - OVERLAP
        query = {"since": _stamp(began), "sort": "updated", "direction": "asc"}
        path = f"/repos/{repository}"
        about = await self._get(path)
        issues: dict[str, object] = {}
        for page in range(1, MAX_PAGES + 1):
            answer = await self._answer(
                f"{path}/issues/comments", **query, per_page=str(PER_PAGE), page=str(page)
            )
            for comment in answer.value if isinstance(answer.value, list) else ():
                number = str(comment.get("issue_url", "")).rpartition("/")[2]
                if number not in issues:
                    issues[number] = await self._get(f"{path}/issues/{number}")
                payload = {
                    "issue": issues[number],
                    "comment": comment,
                    "repository": about,
                    "sender": comment.get("user"),
                }
                for trigger in self._told_or_not(payload, began, until):
                    yield trigger
            if not answer.has_next:
                return

    async def around(self, repository: str, number: str) -> list[Message]:
        """Return the comments of an issue or a pull request, oldest first; see :meth:`comments`."""
        path, said = f"/repos/{repository}/issues/{number}/comments", list[Message]()
        for page in range(1, MAX_PAGES + 1):
            answer = await self._answer(path, per_page=str(PER_PAGE), page=str(page))
            shapes = answer.value if isinstance(answer.value, list) else []
            said += [self._message(Json(shape, "comment")) for shape in shapes]
            if not answer.has_next:
                break
        return said

    def _message(self, comment: Json) -> Message:
        return Message(
            id=str(comment.number("id")),
            author=account(self._me, comment.maybe_part("user")),
            text=comment.maybe_text("body"),
            at=comment.moment("created_at"),
        )

    def _told_or_not(self, payload: Shape, began: datetime, until: datetime) -> list[Trigger]:
        """Leave out what can't be read, and say so: one comment must not stop the others."""
        try:
            return self._told(payload, began, until)
        except TriggerRejectedError as error:
            self._context.log.warning("github.not_listed", extra={"why": error.reason})
            return []

    def _told(self, payload: Shape, began: datetime, until: datetime) -> list[Trigger]:
        comment = Json(payload["comment"], "comment")
        made, changed = comment.moment("created_at"), comment.moment("updated_at")
        actions = ["created"] if made is not None and began <= made <= until else []
        if changed is not None and made is not None and made < changed:
            actions.append("edited")
        return [self._trigger({"action": action, **payload}) for action in actions]

    def _trigger(self, payload: Shape) -> Trigger:
        whole = Json(payload)
        event = Event(
            source=self._context.source,
            action=whole.text("action"),
            payload=whole,
            place=Place.of(whole.part("repository")),
            me=self._me,
        )
        return replace(talk.issue_comment(event), raw=json.dumps(payload).encode())

    async def _get(self, path: str) -> object:
        return (await self._answer(path)).value

    async def _answer(self, path: str, **query: str) -> Answer:
        try:
            answer = await self._client.get(path, **query)
        except (NotSentError, LostError) as error:
            raise ConnectorNotReadyError(str(error)) from error
        if answer.status == 401:
            raise ConnectorAuthFailedError(answer.message)
        if answer.status != 200:
            pause_s = answer.pause_s(self._context.now())
            said = f"GET {path}: {answer.message}"
            raise ConnectorNotReadyError(said, retry_after_s=pause_s)
        return answer


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
