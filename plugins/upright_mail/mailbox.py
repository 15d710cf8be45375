"""Mailbox: what is asked of an IMAP server; all of it only reads, and no flag changes by it.

These functions block: they run in a line's thread. Folders are opened by EXAMINE, and mails are
fetched by BODY.PEEK, so that a person's unread mail stays unread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from email.parser import BytesHeaderParser
from email.policy import compat32
from functools import partial
from typing import Any, Final

from upright_mail.charset import header_text
from upright_mail.headers import Headers, guarded
from upright_mail.imap import Imap

BATCH: Final = 25
BATCH_BYTES: Final = 16 * 1024 * 1024
HEAD_BYTES: Final = 256 * 1024  # of a mail that is too large
_ID_LINES: Final = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]"
_SUBJECT_LINES: Final = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID SUBJECT)]"
Answer = Mapping[bytes, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A folder as it is opened: ``uids`` are in their order."""

    validity: int
    next_uid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A mail of a folder, without its content."""

    uid: int
    at: datetime | None
    size: int = 0
    message_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A mail as it came; of one that is too large only the beginning, and what is attached."""

    uid: int
    at: datetime | None
    raw: bytes
    truncated: bool = False
    attachments: tuple[str, ...] = ()


def examine(client: Imap, folder: str) -> State:
    """Open a folder to read."""
    told = client.select_folder(folder, readonly=True)
    validity = int(told.get(b"UIDVALIDITY", 0))
    next_uid = int(told.get(b"UIDNEXT", 0)) or max(client.search("ALL"), default=0) + 1
    return State(validity=validity, next_uid=next_uid)


def beyond(client: Imap, uid: int) -> list[Listed]:
    """List what lies beyond a number, in order; ``n:*`` always names the last one, too."""
    uids = [one for one in client.search(["UID", f"{uid + 1}:*"]) if one > uid]
    return _listed(client, sorted(uids), ["INTERNALDATE", "RFC822.SIZE"])


def whole(client: Imap) -> list[Listed]:
    """List all mails with their ids, in order: only where the numbers are new."""
    uids = sorted(client.search("ALL"))
    return _listed(client, uids, ["INTERNALDATE", "RFC822.SIZE", _ID_LINES])


def newest(client: Imap, count: int) -> list[Listed]:
    """List the newest mails with their ids, in order."""
    uids = sorted(client.search("ALL"))[-count:]
    return _listed(client, uids, ["INTERNALDATE", _ID_LINES])


def _listed(client: Imap, uids: Sequence[int], items: list[str]) -> list[Listed]:
    found = list[Listed]()
    for begin in range(0, len(uids), 500):
        told = client.fetch(uids[begin : begin + 500], items)
        found += [
            Listed(
                uid=uid,
                at=answer.get(b"INTERNALDATE"),
                size=int(answer.get(b"RFC822.SIZE", 0)),
                message_id=_lines(answer).raw("message-id").strip(),
            )
            for uid, answer in sorted(told.items())
        ]
    return found


def _lines(answer: Answer) -> Headers:
    """Return the header lines that an answer holds."""
    raw = next((v for k, v in answer.items() if k.startswith(b"BODY[HEADER")), b"")
    return Headers.of(BytesHeaderParser(policy=compat32).parsebytes(raw or b"").raw_items())


def batches(listed: Sequence[Listed], cap_bytes: int) -> Iterator[list[Listed]]:
    """Cut a list so that each part is fetched at once."""
    batch, size = list[Listed](), 0
    for one in listed:
        weight = min(one.size, cap_bytes)
        if batch and (len(batch) == BATCH or size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += weight
    if batch:
        yield batch


def fetch(client: Imap, listed: Sequence[Listed], cap_bytes: int) -> list[Fetched]:
    """Fetch mails in their order; what was deleted meanwhile is left out."""
    small = [one.uid for one in listed if one.size <= cap_bytes]
    large = [one.uid for one in listed if one.size > cap_bytes]
    told: dict[int, Answer] = dict(client.fetch(small, ["BODY.PEEK[]"])) if small else {}
    if large:
        head = f"BODY.PEEK[]<0.{min(HEAD_BYTES, cap_bytes)}>"
        told |= client.fetch(large, [head, "BODYSTRUCTURE"])
    return [_fetched(one, told[one.uid], cap_bytes) for one in listed if one.uid in told]


def _fetched(one: Listed, answer: Answer, cap_bytes: int) -> Fetched:
    raw = next((v for k, v in answer.items() if k.startswith(b"BODY[]")), b"") or b""
    structure = answer.get(b"BODYSTRUCTURE")
    return Fetched(
        uid=one.uid,
        at=one.at,
        raw=raw,
        truncated=one.size > cap_bytes,
        attachments=tuple(dict.fromkeys(_names(structure))) if structure else (),
    )


def _names(structure: object) -> Iterator[str]:
    """Yield the file names in a BODYSTRUCTURE: the values of ``name`` and ``filename``."""
    if not isinstance(structure, tuple | list):
        return
    for n, one in enumerate(structure):
        if isinstance(one, bytes) and one.lower() in {b"name", b"filename"}:
            following = structure[n + 1] if n + 1 < len(structure) else b""
            if isinstance(following, bytes) and following:
                name = following.decode("utf-8", "surrogateescape")
                yield guarded(partial(header_text, name), name)
        else:
            yield from _names(one)


def wait(client: Imap, idle_s: float) -> None:
    """Wait by IDLE until something happens, at most so long; then the line has proved itself.

    Leaving IDLE needs an answer, which a dead peer does not give: then the socket times out.
    """
    client.idle()
    client.idle_check(timeout=idle_s)
    client.idle_done()


def similar(client: Imap, sender: str, since: date, before_uid: int) -> list[tuple[str, str]]:
    """Return ids and subjects of earlier mails of a sender, the newest first, at most 50."""
    found = client.search(["FROM", sender, "SINCE", since])
    uids = sorted(uid for uid in found if uid < before_uid)[-50:]
    told = client.fetch(uids, [_SUBJECT_LINES]) if uids else {}
    lines = [_lines(answer) for _, answer in sorted(told.items(), reverse=True)]
    return [(one.raw("message-id").strip(), one.text("subject")) for one in lines]
