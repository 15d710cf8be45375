"""Sending: a comment becomes visible once, or we say that we don't know.

GitHub has no idempotency keys, so each comment carries a hidden marker, and whenever an earlier
try may have worked we look for it before (and after) we send (B15.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorError,
    Effect,
    PermanentSendError,
    Receipt,
    RetryableSendError,
    UnknownSendError,
)
from upright.kit.marker import Mark, mark_of
from upright_github.client import Answer, GitHubClient, LostError, NotSentError
from upright_github.comments import compose
from upright_github.destinations import Way, ways
from upright_github.event import Identity

PAGE: Final = 100
MAX_PAGES: Final = 100  # 10 000 comments on one thread
LOOK_S: Final = 60.0
_GONE: Final = frozenset({404, 410, 422})
_UNFIT: Final = frozenset({404, 422})  # it may be said elsewhere

Found = dict[Mark, Receipt]


class CommentSender:
    """Posts comments for one source; keeps silent while a rate limit asks for it."""

    def __init__(self, client: GitHubClient, me: Identity, now: Callable[[], datetime]) -> None:
        self._client = client
        self._me = me
        self._now = now
        self._silent_until: datetime | None = None

    async def send(self, effect: Effect) -> Receipt:
        """Post what is not there yet of an effect's comments.

        Raises:
            RetryableSendError: nothing became visible in this try.
            PermanentSendError: the destination is gone, or refuses the text.
            UnknownSendError: it may have become visible, and looking did not settle it.
            ConnectorAuthFailedError: the token is refused.
        """
        there_are = ways(effect.destination)
        try:
            comments = compose(effect.text, effect.idempotency_key)
        except ValueError as error:
            raise PermanentSendError(str(error)) from error
        self._keep_silence()
        key = comments[0][0].key
        there = await self._look_first(there_are, key, effect) if effect.tries else {}
        found = all(mark in there for mark, _ in comments)
        receipts = [
            there.get(mark) or await self._post_by(there_are, mark, body, effect.tries)
            for mark, body in comments
        ]
        ids = ",".join(receipt.provider_id for receipt in receipts)
        return Receipt(provider_id=ids, url=receipts[0].url, found=found)

    async def _post_by(
        self, there_are: tuple[Way, ...], mark: Mark, body: str, tries: int
    ) -> Receipt:
        """Post by the first way that GitHub takes; what it refuses elsewhere is final."""
        *first, last = there_are
        for way in first:
            try:
                return await self._post(way, mark, body, tries)
            except _UnfitError:
                continue
        return await self._post(last, mark, body, tries)

    async def _post(self, way: Way, mark: Mark, body: str, tries: int) -> Receipt:
        path = way.look
        try:
            answer = await self._client.post(way.post, {"body": way.preface + body, **way.fields})
        except NotSentError as error:
            raise RetryableSendError(str(error)) from error
        except LostError as error:
            return await self._look_after(path, mark, str(error))
        if answer.status in {200, 201}:
            return _receipt(answer.value) or await self._look_after(path, mark, "Unreadable answer")
        if answer.status >= 500:
            there = await self._look(path, mark.key, unsettled=answer.message)
            if mark not in there:
                raise RetryableSendError(answer.message)
            return there[mark]
        raise self._refusal(answer, tries)

    async def _look_first(self, there_are: tuple[Way, ...], key: str, effect: Effect) -> Found:
        """Look wherever an earlier try may have said it."""
        found: Found = {}
        try:
            for path in dict.fromkeys(way.look for way in there_are):
                found = {**await self._pages(path, key), **found}
        except (NotSentError, LostError, TimeoutError) as error:
            # Nothing was sent in this try, and the next one looks again.
            reason = f"Could not look for an earlier try: {error}"
            raise RetryableSendError(reason) from error
        except _RefusedError as refused:
            raise self._refusal(refused.answer, effect.tries) from refused
        return found

    async def _look_after(self, path: str, mark: Mark, why: str) -> Receipt:
        there = await self._look(path, mark.key, unsettled=why)
        if mark in there:
            return there[mark]
        # It is not there now; GitHub may still be at it.
        reason = f"{why}; it is not among the comments (yet)"
        raise UnknownSendError(reason)

    async def _look(self, path: str, key: str, *, unsettled: str) -> Found:
        try:
            return await self._pages(path, key)
        except (NotSentError, LostError, TimeoutError, _RefusedError) as error:
            reason = f"{unsettled}; then looking failed, too: {error}"
            raise UnknownSendError(reason) from error

    async def _pages(self, path: str, key: str) -> Found:
        """Return all of our own comments that carry a key."""
        found: Found = {}
        async with asyncio.timeout(LOOK_S):
            for page in range(1, MAX_PAGES + 1):
                answer = await self._client.get(path, per_page=str(PAGE), page=str(page))
                if answer.status != 200 or not isinstance(answer.value, list):
                    raise _RefusedError(answer)
                for comment in answer.value:
                    self._collect(comment, key, found)
                if not answer.has_next:
                    return found
        reason = f"more than {PAGE * MAX_PAGES} comments there"
        raise UnknownSendError(reason)

    def _collect(self, comment: object, key: str, found: Found) -> None:
        """Keep a comment when the mark is right and we wrote it: anybody can copy a mark."""
        if not isinstance(comment, dict) or not isinstance(comment.get("body"), str):
            return
        user = comment.get("user")
        login = str(user.get("login", "")) if isinstance(user, dict) else ""
        bot = isinstance(user, dict) and user.get("type") == "Bot"
        mark, receipt = mark_of(comment["body"]), _receipt(comment)
        if mark and mark.key == key and receipt and self._me.is_login(login, bot=bot):
            found.setdefault(mark, receipt)

    def _keep_silence(self) -> None:
        if self._silent_until is None:
            return
        left_s = (self._silent_until - self._now()).total_seconds()
        if left_s > 0:
            raise RetryableSendError("A rate limit of GitHub still holds", after_s=left_s)
        self._silent_until = None

    def _refusal(self, answer: Answer, tries: int) -> ConnectorError:
        """Return what a refusal means; nothing became visible."""
        if answer.status == 401:
            return ConnectorAuthFailedError(answer.message)
        pause_s = answer.pause_s(self._now(), tries=tries)
        if pause_s is not None:
            self._silent_until = self._now() + timedelta(seconds=pause_s)
            return RetryableSendError(answer.message, after_s=pause_s)
        if answer.status >= 500:
            return RetryableSendError(answer.message)
        gone = "It is gone, or refused: " if answer.status in _GONE else ""
        kind = _UnfitError if answer.status in _UNFIT else PermanentSendError
        return kind(f"{gone}{answer.message} (HTTP {answer.status})")


class _UnfitError(PermanentSendError):
    """It can't be said there."""


class _RefusedError(Exception):
    """A list of comments was refused."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message)
        self.answer = answer


def _receipt(comment: object) -> Receipt | None:
    """Return a comment's id and address; None when it has no id."""
    if not isinstance(comment, dict) or not isinstance(comment.get("id"), int):
        return None
    return Receipt(provider_id=str(comment["id"]), url=str(comment.get("html_url") or ""))
