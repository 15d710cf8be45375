"""Sending: a reply goes out once, or we say that we don't know (B15.2)."""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from upright.api import (
    ConnectorContext,
    ConnectorError,
    ConnectorNotReadyError,
    Effect,
    Receipt,
    RetryableSendError,
    UnknownSendError,
)
from upright_mail.budget import Budget
from upright_mail.compose import Letter, Writer, compose
from upright_mail.sent import Sent, Trace
from upright_mail.smtp import Post

MAX_REMEMBERED: Final = 2000


@dataclass(slots=True, kw_only=True)
class MailSender:
    """Sends the replies of one source. ``sent`` is None where no folder keeps them.

    ``unseen`` remembers which letters certainly did not go out.
    """

    context: ConnectorContext
    writer: Writer
    post: Post
    sent: Sent | None
    budget: Budget
    unseen: OrderedDict[str, None] = field(default_factory=OrderedDict)

    async def send(self, effect: Effect) -> Receipt:
        """Send a reply.

        Raises:
            RetryableSendError: it did not go out; the server is gone, or the thread's budget is.
            PermanentSendError: it did not and will not: the server refuses it, or it is no mail.
            UnknownSendError: it may have gone out, and nothing settles that.
            ConnectorAuthFailedError: the server refuses our password.
        """
        now = self.context.now()
        letter = compose(effect, self.writer, now)
        if effect.tries and (receipt := await self._look(letter)):
            return receipt
        wait_s = self.budget.wait_s(letter.answers, now, prompt=letter.prompt)
        if wait_s > 0:
            raise RetryableSendError("This thread has had its answers for now", after_s=wait_s)
        await self._begin(letter)
        try:
            await self.post.deliver(letter)
        except UnknownSendError:
            raise
        except ConnectorError:  # every other one says that it was not accepted
            await self._undo(letter)
            raise
        self.budget.sent(letter.answers, letter.message_id, now)
        await self._note("mail.sent_unmarked", letter)
        return Receipt(provider_id=letter.message_id)

    async def _look(self, letter: Letter) -> Receipt | None:
        """Look for an earlier try: its receipt, or None when nothing went out."""
        if letter.message_id in self.unseen:
            return None
        if self.sent is None:
            reason = "An earlier try may have gone out, and no sent_folder tells"
            raise UnknownSendError(reason)
        try:
            trace = await self.sent.trace(letter.message_id)
        except ConnectorNotReadyError as error:
            reason = f"Could not look for an earlier try: {error}"
            raise RetryableSendError(reason) from error
        if trace is Trace.BEGUN:
            reason = f"An earlier try ended while {letter.message_id} was handed over"
            raise UnknownSendError(reason)
        if trace is Trace.SENT:
            return Receipt(provider_id=letter.message_id, found=True)
        return None

    async def _begin(self, letter: Letter) -> None:
        self.unseen.pop(letter.message_id, None)
        if self.sent is None:
            return
        try:
            await self.sent.begin(letter)
        except ConnectorNotReadyError as error:
            reason = f"The sent_folder can't be written: {error}"
            raise RetryableSendError(reason) from error

    async def _undo(self, letter: Letter) -> None:
        """Remember that it did not go out; a draft that stays is known by that, too."""
        self.unseen[letter.message_id] = None
        while len(self.unseen) > MAX_REMEMBERED:
            self.unseen.popitem(last=False)
        if self.sent is not None:
            try:
                await self.sent.drop(letter.message_id)
            except ConnectorNotReadyError as error:
                self._warn("mail.draft_stays", letter, error)

    async def _note(self, event: str, letter: Letter) -> None:
        if self.sent is not None:
            try:
                await self.sent.done(letter.message_id)
            except ConnectorNotReadyError as error:
                self._warn(event, letter, error)

    def _warn(self, event: str, letter: Letter, error: Exception) -> None:
        log: logging.Logger = self.context.log
        log.warning(event, extra={"id": letter.message_id, "why": str(error)})
