"""Sending: a note becomes visible once, or we say that we don't know; and it commands nothing.

GitLab has no idempotency keys, so each note carries a hidden marker, and whenever an earlier try
may have worked we look for it before (and after) we send (B15.2). A line such as ``/merge`` is a
command to GitLab wherever it stands in a note: it is made plain text.

Source: docs.gitlab.com, "Notes API", "Quick actions" and "Application limits".
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorError,
    Destination,
    Effect,
    PermanentSendError,
    Receipt,
    RetryableSendError,
    UnknownSendError,
)
from upright.kit.calls import LostError, NotSentError
from upright.kit.marker import TAIL_CHARS, Mark, escape, mark_of
from upright_ci.gitlab.client import Answer, GitLabClient, project_path

MAX_BODY_CHARS: Final = 1_000_000  # GitLab: "Maximum comment size"
MAX_TEXT_CHARS: Final = MAX_BODY_CHARS - TAIL_CHARS
PAGE: Final = 100
MAX_PAGES: Final = 100
LOOK_S: Final = 60.0
_COMMAND: Final = re.compile(
    r"^(?P<before>[ \t>]*)/(?=[a-z_]+(?:\s|\Z))", re.MULTILINE | re.IGNORECASE
)
_PROJECT: Final = re.compile(r"[\w.-]{1,255}(?:/[\w.-]{1,255}){0,20}", re.ASCII)
_ON: Final = frozenset({"merge_requests", "issues"})


def disarmed(text: str) -> str:
    r"""Return a text in which no line is a command: ``/merge`` becomes ``\/merge``."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _COMMAND.sub(r"\g<before>\\/", lines)


class NoteSender:
    """Posts notes for one source; keeps silent while a rate limit asks for it."""

    def __init__(self, client: GitLabClient, login: str, now: Callable[[], datetime]) -> None:
        self._client = client
        self._login = login.lower()
        self._now = now
        self._silent_until: datetime | None = None

    async def send(self, effect: Effect) -> Receipt:
        """Post a note, if it is not there yet.

        Raises:
            RetryableSendError: nothing became visible in this try.
            PermanentSendError: the destination is gone, or refuses the text.
            UnknownSendError: it may have become visible, and looking did not settle it.
            ConnectorAuthFailedError: the token is refused.
        """
        path = _path(effect.destination)
        if not effect.text.strip():
            raise PermanentSendError("An empty note can't be sent")
        text = disarmed(effect.text)
        if len(text) > MAX_TEXT_CHARS:
            reason = f"The text has {len(text)} characters: more than a note holds"
            raise PermanentSendError(reason)
        self._keep_silence()
        mark = Mark(escape(effect.idempotency_key), 1, 1)
        if effect.tries and (there := await self._look_first(path, mark)):
            return there
        return await self._post(path, mark, f"{text}\n\n{mark}")

    async def _post(self, path: str, mark: Mark, body: str) -> Receipt:
        try:
            answer = await self._client.post(path, {"body": body})
        except NotSentError as error:
            raise RetryableSendError(str(error)) from error
        except LostError as error:
            return await self._look_after(path, mark, str(error))
        if answer.status == 201:
            made = _receipt(answer.value)
            return made or await self._look_after(path, mark, "Unreadable answer")
        if answer.status >= 500:
            return await self._look_after(path, mark, answer.message)
        raise self._refusal(answer)

    async def _look_first(self, path: str, mark: Mark) -> Receipt | None:
        try:
            found = await self._find(path, mark)
        except (NotSentError, LostError, TimeoutError) as error:
            # Nothing was sent in this try, and the next one looks again.
            reason = f"Could not look for an earlier try: {error}"
            raise RetryableSendError(reason) from error
        except _RefusedError as refused:
            raise self._refusal(refused.answer) from refused
        return found

    async def _look_after(self, path: str, mark: Mark, why: str) -> Receipt:
        try:
            found = await self._find(path, mark)
        except (NotSentError, LostError, TimeoutError, _RefusedError) as error:
            reason = f"{why}; then looking failed, too: {error}"
            raise UnknownSendError(reason) from error
        if found is None:
            reason = f"{why}; it is not among the notes (yet)"
            raise UnknownSendError(reason)
        return found

    async def _find(self, path: str, mark: Mark) -> Receipt | None:
        """Return our own note with a mark, the newest first: anybody can copy a mark."""
        page = "1"
        async with asyncio.timeout(LOOK_S):
            for _ in range(MAX_PAGES):
                answer = await self._client.get(
                    path, sort="desc", order_by="created_at", per_page=str(PAGE), page=page
                )
                if answer.status != 200 or not isinstance(answer.value, list):
                    raise _RefusedError(answer)
                ours = (self._ours(one, mark) for one in answer.value)
                if found := next(filter(None, ours), None):
                    return found
                if not (page := answer.next_page):
                    return None
        reason = f"more than {PAGE * MAX_PAGES} notes there"
        raise UnknownSendError(reason)

    def _ours(self, note: object, mark: Mark) -> Receipt | None:
        if not isinstance(note, dict) or mark_of(str(note.get("body"))) != mark:
            return None
        author = note.get("author")
        login = str(author.get("username", "")) if isinstance(author, dict) else ""
        made = _receipt(note) if login.lower() == self._login else None
        return Receipt(provider_id=made.provider_id, url=made.url, found=True) if made else None

    def _keep_silence(self) -> None:
        if self._silent_until is None:
            return
        left_s = (self._silent_until - self._now()).total_seconds()
        if left_s > 0:
            raise RetryableSendError("A rate limit of GitLab still holds", after_s=left_s)
        self._silent_until = None

    def _refusal(self, answer: Answer) -> ConnectorError:
        """Return what a refusal means; nothing became visible."""
        if answer.status == 401:
            return ConnectorAuthFailedError(answer.message)
        if answer.pause_s is not None:
            self._silent_until = self._now() + timedelta(seconds=answer.pause_s)
            return RetryableSendError(answer.message, after_s=answer.pause_s)
        if answer.status >= 500:
            return RetryableSendError(answer.message)
        return PermanentSendError(f"{answer.message} (HTTP {answer.status})")


class _RefusedError(Exception):
    """A list of notes was refused."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message)
        self.answer = answer


def _path(destination: Destination) -> str:
    """Return the path of a thread's notes; a destination that is none of ours is permanent."""
    parts = dict(destination.address)
    project, on, iid = (parts.get(key, "") for key in ("project", "on", "iid"))
    fits = _PROJECT.fullmatch(project) and on in _ON and iid.isascii() and iid.isdigit()
    if destination.kind != "note" or not fits or {".", ".."} & set(project.split("/")):
        reason = f"No destination of GitLab: {destination.kind} {parts}"
        raise PermanentSendError(reason)
    return f"{project_path(project)}/{on}/{iid}/notes"


def _receipt(note: object) -> Receipt | None:
    """Return a note's id, as our own webhooks name it; None when it has none."""
    if not isinstance(note, dict) or not isinstance(note.get("id"), int):
        return None
    return Receipt(provider_id=f"note:{note['id']}", url=str(note.get("web_url") or ""))
