"""Sent: our own mails in their folder; from it we know after a crash what went out.

SMTP has no idempotency keys. So each letter is put into the folder as a draft before it is handed
over, and the mark of a draft is taken away once the server has accepted it: found without that
mark, it went out; found with it, a try ended in between; not found, nothing was sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final

from imapclient import DRAFT, SEEN
from imapclient.exceptions import IMAPClientError

from upright_mail.compose import Letter
from upright_mail.imap import Imap
from upright_mail.line import Line

_HEADER: Final = ("HEADER", "Message-ID")


class Trace(Enum):
    """What the folder says of a letter."""

    SENT = "sent"
    BEGUN = "begun"
    NONE = "none"


class Sent:
    """The folder; each question has its own line. ConnectorNotReadyError: it is out of reach."""

    def __init__(self, folder: str, dial: Callable[[], Awaitable[Line]]) -> None:
        self._folder = folder
        self._dial = dial

    async def trace(self, message_id: str) -> Trace:
        """Say what is known of a letter."""
        return await self._do(lambda client: _trace(client, self._folder, message_id))

    async def begin(self, letter: Letter) -> None:
        """Put a letter there as a draft; one that is there already stays."""
        await self._do(lambda client: _begin(client, self._folder, letter))

    async def done(self, message_id: str) -> None:
        """Say that it went out."""
        await self._do(lambda client: _mark(client, self._folder, message_id))

    async def drop(self, message_id: str) -> None:
        """Take a draft away: the letter certainly did not go out."""
        await self._do(lambda client: _drop(client, self._folder, message_id))

    async def _do(self, work: Callable[[Imap], Trace | None]) -> Trace:
        line = await self._dial()
        try:
            return await line.call(work) or Trace.NONE
        finally:
            await line.close()


def _find(client: Imap, folder: str, message_id: str) -> list[int]:
    try:
        client.select_folder(folder)
    except IMAPClientError:
        client.create_folder(folder)
        client.select_folder(folder)
    return list(client.search([*_HEADER, message_id.strip("<>")]))


def _trace(client: Imap, folder: str, message_id: str) -> Trace:
    found = _find(client, folder, message_id)
    if not found:
        return Trace.NONE
    flags = client.get_flags(found)
    return Trace.SENT if any(DRAFT not in one for one in flags.values()) else Trace.BEGUN


def _begin(client: Imap, folder: str, letter: Letter) -> None:
    if not _find(client, folder, letter.message_id):
        client.append(folder, letter.raw, flags=(DRAFT, SEEN))


def _mark(client: Imap, folder: str, message_id: str) -> None:
    if found := _find(client, folder, message_id):
        client.remove_flags(found, [DRAFT])


def _drop(client: Imap, folder: str, message_id: str) -> None:
    found = _find(client, folder, message_id)
    drafts = [uid for uid, flags in client.get_flags(found).items() if DRAFT in flags]
    if drafts:
        client.delete_messages(drafts)
        client.expunge(drafts if client.has_capability("UIDPLUS") else None)
