"""The connector of one mailbox."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from upright.api import (
    Capabilities,
    ConnectorContext,
    ConnectorError,
    ConnectorNotReadyError,
    Effect,
    Health,
    PermanentSendError,
    Probe,
    Receipt,
    RetryableSendError,
    Secret,
    Trigger,
)
from upright.kit.calendar.itip import Memory
from upright.kit.quiet import Quiet
from upright_mail import cursor
from upright_mail.budget import Budget
from upright_mail.compose import MAX_TEXT_CHARS, Writer
from upright_mail.cursor import Mark
from upright_mail.folder import Folder, FolderParts
from upright_mail.line import Line
from upright_mail.mailbox import examine
from upright_mail.meetings import Meetings
from upright_mail.mime import Mail
from upright_mail.sender import MailSender
from upright_mail.sent import Sent
from upright_mail.settings import MailSettings, Senders
from upright_mail.smtp import Post
from upright_mail.translate import Translator


class MailConnector(Quiet):
    """One source: a mailbox to read, and where replies go out."""

    def __init__(self, source: str, settings: MailSettings) -> None:
        self._source = source
        self._settings = settings
        self._context: ConnectorContext | None = None
        self._password: Secret | None = None
        self._sender: MailSender | None = None
        self._budget = Budget(per_hour=settings.answers_per_hour, prompt_s=settings.prompt_s)
        self._marks: dict[str, Mark] = {}
        self._meetings = Meetings(settings.zone, Memory())
        self._storing = asyncio.Lock()
        self._heard_at: datetime | None = None
        self._gap = ""

    async def validate(self) -> Probe:
        """Sign in at both servers, and open each folder.

        Raises:
            ConnectorAuthFailedError: a password is refused.
            ConnectorNotReadyError: a server can't be reached, or a folder is not there.
        """
        settings, context = self._settings, self._started()
        line = await self._dial()
        try:
            for folder in settings.folders:
                await line.call(partial(examine, folder=folder))
        finally:
            await line.close()
        if settings.smtp is not None and self._password is not None:
            try:
                await Post(settings.smtp, settings, self._password).check()
            except (RetryableSendError, PermanentSendError) as error:
                raise ConnectorNotReadyError(str(error)) from error
        context.log.info("mail.validated")
        return self._probe()

    def _probe(self) -> Probe:
        settings = self._settings
        doors = ("read", "send") if settings.smtp else ("read",)
        summary = f"Signed in as {settings.user}, {len(settings.folders)} folders"
        if settings.senders is Senders.VERIFIED and not settings.authserv_id:
            summary += "; without authserv_id nobody's address is verified: all are strangers"
        return Probe(ok=True, summary=summary, scopes=doors)

    async def start(self, context: ConnectorContext) -> None:
        """Sign in once, so that a wrong password is known at once."""
        settings = self._settings
        self._context = context
        self._password = context.secret(settings.password)
        line = await self._dial()
        await line.close()
        if settings.smtp is not None:
            self._sender = MailSender(
                context=context,
                writer=Writer(address=settings.addresses[0], name=settings.name),
                post=Post(settings.smtp, settings, self._password),
                sent=Sent(settings.sent_folder, self._dial) if settings.sent_folder else None,
                budget=self._budget,
            )

    async def listen(self) -> None:
        """Listen to every folder, each on a line of its own, from the cursor on."""
        context = self._started()
        self._marks, memory = await self._stored(context)
        self._meetings = Meetings(self._settings.zone, memory)
        parts = FolderParts(
            settings=self._settings,
            context=context,
            translator=Translator(self._source, self._settings),
            meetings=self._meetings,
            commit=self._commit,
            heard=self._hear,
            missed=self._miss,
            is_prompt=self._is_prompt,
        )
        try:
            async with asyncio.TaskGroup() as group:
                for name in self._settings.folders:
                    folder = Folder(name, self._marks.get(name), parts)
                    group.create_task(self._hear_folder(folder), name=f"folder:{name}")
        except ExceptionGroup as broken:
            known, _ = broken.split(ConnectorError)
            if known is None:
                raise
            raise known.exceptions[0] from broken

    async def _hear_folder(self, folder: Folder) -> None:
        line = await self._dial()
        try:
            await folder.listen(line)
        finally:
            line.cut()

    async def _stored(self, context: ConnectorContext) -> tuple[dict[str, Mark], Memory]:
        """Read the cursor; one that says nothing is as good as none, but for a warning."""
        text = await context.cursor()
        if text is None:
            return {}, Memory()
        try:
            return cursor.load(text)
        except ValueError as error:
            context.log.warning("mail.cursor_lost", extra={"why": str(error)})
            self._miss("The cursor was lost: what came before this start was not read")
            return {}, Memory()

    async def _commit(self, folder: str, mark: Mark, triggers: Sequence[Trigger]) -> None:
        """Store triggers with the mark; it holds only once they are stored (B1.6)."""
        async with self._storing:
            marks = {**self._marks, folder: mark}
            await self._started().emit(triggers, cursor=cursor.dump(marks, self._meetings.memory))
            self._marks = marks

    def _hear(self) -> None:
        self._heard_at = self._started().now()

    def _miss(self, what: str) -> None:
        self._gap = what

    def _is_prompt(self, mail: Mail) -> bool:
        return self._budget.is_prompt(mail.in_reply_to, self._started().now())

    async def stop(self, timeout_s: float) -> None:
        """Forget the password; the lines were closed when listening was cancelled."""
        del timeout_s
        self._sender = self._password = self._context = None

    async def send(self, effect: Effect) -> Receipt:
        """Send a reply once; see :class:`MailSender` for what it raises."""
        if self._context is None:
            raise ConnectorNotReadyError("The source is not started")
        if self._sender is None:
            raise PermanentSendError("This source has no smtp server to send by")
        return await self._sender.send(effect)

    def capabilities(self) -> Capabilities:
        """Say what this connector can do."""
        return Capabilities(
            listens=True,
            destinations=("mail",) if self._settings.smtp else (),
            max_text_chars=MAX_TEXT_CHARS,
            max_body_bytes=self._settings.max_mail_bytes,
        )

    def health(self) -> Health:
        """Say when the server last answered, and what may have been missed."""
        return Health(heard_at=self._heard_at, gap=self._gap)

    async def _dial(self) -> Line:
        if self._password is None:
            raise ConnectorNotReadyError("The source is not started")
        line = Line(self._settings, self._password)
        await line.open()
        return line

    def _started(self) -> ConnectorContext:
        if self._context is None:
            raise ConnectorNotReadyError("The source is not started")
        return self._context
