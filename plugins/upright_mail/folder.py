"""Folder: one folder's listener: what is new in it becomes triggers, in order, each once.

The mark moves in the transaction that stored what it covers. What is found when a line is opened
came while nobody listened: it is marked late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from upright.api import ConnectorContext, Trigger
from upright.kit.late import late
from upright_mail import mailbox
from upright_mail.cursor import KEPT_IDS, Mark, id_digest
from upright_mail.keys import bare_subject, is_answer
from upright_mail.line import Line
from upright_mail.mailbox import Fetched, Listed, State
from upright_mail.meetings import Meetings
from upright_mail.mime import Mail, read
from upright_mail.settings import MailSettings
from upright_mail.translate import Arrived, Translator

RESEMBLES: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderParts:
    """What a listener works with.

    ``commit`` stores triggers with a folder's mark. ``heard`` is told of each sign of life, and
    ``missed`` of what may be gone for good. ``is_prompt`` knows mails that came back too soon.
    """

    settings: MailSettings
    context: ConnectorContext
    translator: Translator
    meetings: Meetings
    commit: Callable[[str, Mark, Sequence[Trigger]], Awaitable[None]]
    heard: Callable[[], None]
    missed: Callable[[str], None]
    is_prompt: Callable[[Mail], bool]


class Folder:
    """Listens to one folder on a line of its own."""

    def __init__(self, name: str, mark: Mark | None, parts: FolderParts) -> None:
        self._name = name
        self._mark = mark
        self._parts = parts

    async def listen(self, line: Line) -> None:
        """Catch up, then take what comes, until cancelled or the line breaks."""
        state = await line.call(partial(mailbox.examine, folder=self._name))
        idles = await line.call(lambda client: bool(client.has_capability("IDLE")))
        mark = self._mark or await self._now(line, state)
        mark = await self._caught_up(line, mark, state)
        while True:
            await self._wait(line, idles=idles)
            found = await line.call(partial(mailbox.beyond, uid=mark.uid))
            self._parts.heard()
            mark = await self._take(line, mark, found, is_late=False)

    async def _wait(self, line: Line, *, idles: bool) -> None:
        settings = self._parts.settings
        if idles:
            idle_s = settings.idle_s
            await line.call(partial(mailbox.wait, idle_s=idle_s), more_s=idle_s)
        else:
            await self._parts.context.sleep(settings.poll_s)
            await line.call(lambda client: client.noop())

    # -------------------------------------------------------------- where to begin
    async def _now(self, line: Line, state: State) -> Mark:
        """Return the mark behind everything that is there, and store it: nothing is replayed."""
        mark = Mark(validity=state.validity, uid=state.next_uid - 1)
        for one in await line.call(partial(mailbox.newest, count=KEPT_IDS)):
            mark = mark.beyond(0, one.at, one.message_id)
        await self._parts.commit(self._name, mark, ())
        return mark

    async def _caught_up(self, line: Line, mark: Mark, state: State) -> Mark:
        """Take what came while nobody listened."""
        if mark.validity == state.validity and mark.uid < state.next_uid:
            found = await line.call(partial(mailbox.beyond, uid=mark.uid))
            self._parts.heard()
            return await self._take(line, mark, found, is_late=True)
        return await self._renumbered(line, mark, state)

    async def _renumbered(self, line: Line, mark: Mark, state: State) -> Mark:
        """Find by Message-IDs where we were: the numbers are new, or those of an older backup."""
        listed = await line.call(mailbox.whole)
        known = {one for one in listed if id_digest(one.message_id) in mark.ids}
        log = self._parts.context.log
        extra = {"folder": self._name, "was": mark.validity, "is": state.validity}
        if mark.ids and not known:
            log.warning("mail.cursor_lost", extra=extra)
            self._parts.missed(
                f"The folder {self._name} is another one than before:"
                " what came between was not read"
            )
            return await self._now(line, state)
        log.warning("mail.renumbered", extra=extra)
        new = [one for one in listed if one not in known and _epoch(one) >= mark.at]
        start = Mark(validity=state.validity, uid=0, at=mark.at, ids=mark.ids)
        mark = await self._take(line, start, new, is_late=True)
        last = max(mark.uid, state.next_uid - 1)
        mark = Mark(validity=mark.validity, uid=last, at=mark.at, ids=mark.ids)
        await self._parts.commit(self._name, mark, ())
        return mark

    # -------------------------------------------------------------- taking
    async def _take(
        self, line: Line, mark: Mark, found: Sequence[Listed], *, is_late: bool
    ) -> Mark:
        """Fetch what was found, and store it by batches, each with the mark that covers it."""
        cap = self._parts.settings.max_mail_bytes
        for batch in mailbox.batches(found, cap):
            fetched = await line.call(partial(mailbox.fetch, listed=batch, cap_bytes=cap))
            triggers = list[Trigger]()
            for one in fetched:
                mail = await asyncio.to_thread(read, one.raw)  # a large one takes its time
                made = await self._told(line, one, mail)
                mark = mark.beyond(one.uid, one.at, mail.message_id)
                triggers += map(late, made) if is_late else made
            mark = mark.beyond(batch[-1].uid, None, "")
            await self._parts.commit(self._name, mark, triggers)
        return mark

    async def _told(self, line: Line, one: Fetched, mail: Mail) -> tuple[Trigger, ...]:
        arrived = Arrived(
            folder=self._name,
            at=one.at,
            truncated=one.truncated,
            more_attachments=one.attachments,
            resembles=await self._resembled(line, one, mail),
            prompt=self._parts.is_prompt(mail),
        )
        made = self._parts.translator.trigger(mail, arrived)
        if made is None:
            extra = {"folder": self._name, "uid": one.uid, "id": mail.message_id}
            self._parts.context.log.info("mail.not_allowed", extra=extra)
            return ()
        return self._parts.meetings.told(made, mail.calendar)

    async def _resembled(self, line: Line, one: Fetched, mail: Mail) -> str:
        """Find what a mail answers by subject and sender alone, where it says nothing better."""
        sender = next((each.address for each in mail.senders), "")
        if mail.in_reply_to or mail.references or not sender.isascii() or not sender:
            return ""
        if not is_answer(mail.subject) or not (subject := bare_subject(mail.subject)):
            return ""
        since = (self._parts.context.now() - RESEMBLES).date()
        earlier = await line.call(lambda client: mailbox.similar(client, sender, since, one.uid))
        return next((i for i, said in earlier if i and bare_subject(said) == subject), "")


def _epoch(one: Listed) -> int:
    return int(one.at.timestamp()) if one.at else 0
