"""MIME: the bytes of a mail become a :class:`Mail`; what is broken costs that field alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.message import Message
from email.parser import BytesHeaderParser, BytesParser
from email.policy import compat32
from functools import partial
from typing import Any, Final, TypeAlias

from upright_mail.bodies import html_text, tidy, unflowed
from upright_mail.charset import decode, header_text
from upright_mail.headers import MIME_TROUBLE, Headers, Mailbox, guarded

MAX_PARTS: Final = 1000
MAX_ATTACHMENTS: Final = 100
MAX_CALENDAR_BYTES: Final = 1024 * 1024
_END_OF_HEAD: Final = re.compile(rb"\r?\n\r?\n|\Z")
_HEADER_LINE: Final = re.compile(rb"[\x21-\x39\x3b-\x7e]+[ \t]*:|[ \t]|\r?\Z")
Part: TypeAlias = "Message[Any, Any]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """What is attached: its name, as it is shown, and its type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """A calendar part (iTIP, RFC 6047): the method in upper case, empty when there is none."""

    method: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A machine's report on a mail (RFC 3464, 8098, 5965): what of, and how it says it went."""

    type: str  # delivery-status, disposition-notification, feedback-report
    original_id: str = ""
    recipient: str = ""
    action: str = ""
    status: str = ""
    diagnostic: str = ""

    def summary(self) -> str:
        """Say it in a line, where no person's words go with it."""
        return " ".join(filter(None, (self.action, self.recipient, self.status, self.diagnostic)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A mail, read as far as it can be."""

    raw: bytes
    headers: Headers
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    calendar: Calendar | None = None
    report: Report | None = None

    @property
    def message_id(self) -> str:
        """Its own id, with angle brackets; empty when it has none."""
        return next(iter(self.headers.ids("message-id")), "")

    @property
    def in_reply_to(self) -> tuple[str, ...]:
        """What it says it answers; one id, rarely more."""
        return self.headers.ids("in-reply-to")

    @property
    def references(self) -> tuple[str, ...]:
        """The conversation, oldest first."""
        return self.headers.ids("references")

    @property
    def subject(self) -> str:
        """The subject, on one line."""
        return " ".join(self.headers.text("subject").split())

    @property
    def senders(self) -> tuple[Mailbox, ...]:
        """Whom all From lines name."""
        return self.headers.mailboxes("from")

    @property
    def date(self) -> datetime | None:
        """When its writer says that it was written."""
        return self.headers.date()


@dataclass(slots=True)
class _Found:
    """What the parts of one mail hold, gathered in their order."""

    texts: list[str] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    calendar: Calendar | None = None
    report: Report | None = None


def read(raw: bytes) -> Mail:
    """Read a mail. Nothing that it holds makes this raise; see :data:`MIME_TROUBLE`."""
    whole = _repaired(raw)
    try:
        root: Part = BytesParser(policy=compat32).parsebytes(whole)
    except MIME_TROUBLE:  # nested beyond reason: its head and its text as they stand
        root = BytesHeaderParser(policy=compat32).parsebytes(whole)
    found = _Found()
    for part in _leaves(root):
        guarded(partial(_take, part, found), None)
    report = found.report
    if report is not None and not report.original_id:
        report = guarded(partial(_with_original, root, report), report)
    return Mail(
        raw=raw,
        headers=Headers.of(root.raw_items()),
        text=tidy("\n\n".join(filter(None, found.texts))) or (report.summary() if report else ""),
        attachments=tuple(found.attachments[:MAX_ATTACHMENTS]),
        calendar=found.calendar,
        report=report,
    )


def _repaired(raw: bytes) -> bytes:
    """Return a mail whose head the parser reads to its end.

    The parser takes the first line that is no header line for the beginning of the body: the mark
    of a byte order, a mailbox's own "From " line, or a line that some server broke.
    """
    raw = raw.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    if raw.startswith((b"From ", b">From ")):
        raw = raw.partition(b"\n")[2]
    end = _END_OF_HEAD.search(raw)
    head = raw[: end.start()] if end else raw
    if not _HEADER_LINE.match(head):
        return raw
    lines = head.split(b"\n")
    mended = [line if _HEADER_LINE.match(line) else b"X-Broken: " + line for line in lines]
    return b"\n".join(mended) + raw[len(head) :] if mended != lines else raw


# ------------------------------------------------------------------ walking
def _leaves(root: Part) -> Iterator[Part]:
    """Yield the parts that hold something, in their order; of alternatives, the best one."""
    stack, seen = [root], 0
    while stack and seen < MAX_PARTS:
        part, seen = stack.pop(), seen + 1
        inner = _inner(part)
        if not inner or part.get_content_maintype() != "multipart":
            yield part
        elif part.get_content_subtype() == "alternative":
            stack.extend(reversed(_best(inner)))
        else:
            stack.extend(reversed(inner))


def _inner(part: Part) -> list[Part]:
    """Return the parts inside a part."""
    content = part.get_payload()
    return [one for one in content if isinstance(one, Message)] if isinstance(content, list) else []


def _best(parts: list[Part]) -> list[Part]:
    """Return the plain text of alternatives, else their last text; calendars are kept, too."""
    calendars = [part for part in parts if part.get_content_type() == "text/calendar"]
    others = [part for part in parts if part not in calendars]
    plain = [part for part in others if part.get_content_type() == "text/plain" and _says(part)]
    return (plain[:1] or others[-1:]) + calendars


def _says(part: Part) -> bool:
    return bool(guarded(lambda: _text(part), "").strip())


def _take(part: Part, found: _Found) -> None:
    kind, name = part.get_content_type(), _name(part)
    if kind == "text/calendar" or name.lower().endswith(".ics"):
        _take_calendar(part, found)
    if kind in _REPORTS:
        found.report = _report(part, kind.partition("/")[2])
        return
    if _is_body(part, kind, name):
        found.texts.append(_text(part).strip("\r\n"))
        return
    if kind == "message/rfc822":
        name = name or _subject_of(part)
    found.attachments.append(Attachment(name=name or kind, type=kind))


def _is_body(part: Part, kind: str, name: str) -> bool:
    if kind not in {"text/plain", "text/html", "text/enriched"}:
        return False
    return not name and guarded(part.get_content_disposition, None) != "attachment"


def _name(part: Part) -> str:
    """Return a file's name: RFC 2231 first, then the encoded words that many programs write."""
    name = guarded(part.get_filename, None) or ""
    return " ".join(header_text(name).replace("\\", "/").rpartition("/")[2].split())[:255]


def _subject_of(part: Part) -> str:
    if inner := _inner(part):
        return " ".join(Headers.of(inner[0].raw_items()).text("subject").split())[:255]
    return ""


def _bytes(part: Part) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _param(part: Part, name: str) -> str:
    """Return a parameter of the content type; one in RFC 2231's form without its charset."""
    found: object = guarded(partial(part.get_param, name), None)
    return str(found[2] if isinstance(found, tuple) else found or "")


def _text(part: Part) -> str:
    charset = _param(part, "charset")
    text = decode(_bytes(part), charset)
    if part.get_content_type() == "text/html":
        return html_text(text)
    if _param(part, "format").lower() == "flowed":
        return unflowed(text, delete_space=_param(part, "delsp").lower() == "yes")
    return text


def _take_calendar(part: Part, found: _Found) -> None:
    body = _bytes(part)[:MAX_CALENDAR_BYTES]
    if found.calendar is not None or not body.strip():
        return
    method = _param(part, "method").upper()
    if not method:
        lines = (line.strip().upper() for line in body[:4096].decode("latin-1").splitlines())
        method = next((one[7:] for one in lines if one.startswith("METHOD:")), "")
    found.calendar = Calendar(method=method[:20], body=body)


# ------------------------------------------------------------------ reports
_REPORTS: Final = frozenset(
    {"message/delivery-status", "message/disposition-notification", "message/feedback-report"}
)


def _report(part: Part, kind: str) -> Report:
    """Read the fields of a report: of its blocks one after another, the first is the mail's."""
    lines = [item for block in _inner(part) for item in block.raw_items()]
    if not lines:
        lines = list(BytesHeaderParser(policy=compat32).parsebytes(_bytes(part)).raw_items())
    told = Headers.of(lines)
    return Report(
        type=kind,
        original_id=next(iter(told.ids("original-message-id")), ""),
        recipient=_typed(told, "final-recipient") or _typed(told, "original-recipient"),
        action=told.word("action") or _disposition(told),
        status=told.word("status"),
        diagnostic=" ".join(told.text("diagnostic-code").split())[:500],
    )


def _typed(told: Headers, name: str) -> str:
    """Return the value of a field such as ``rfc822; ann@example.org``."""
    value = told.text(name)
    return (value.partition(";")[2] or value).strip().strip("<>").lower()


def _disposition(told: Headers) -> str:
    return told.text("disposition").rpartition(";")[2].strip().lower()


def _with_original(root: Part, report: Report) -> Report:
    """Find which mail a report speaks of, in the copy (or the head) that it brings back."""
    for part in root.walk():
        if part.get_content_type() not in {"message/rfc822", "text/rfc822-headers"}:
            continue
        if inner := _inner(part):
            lines = Headers.of(inner[0].raw_items())
        else:
            parsed = BytesHeaderParser(policy=compat32).parsebytes(_bytes(part))
            lines = Headers.of(parsed.raw_items())
        if ids := lines.ids("message-id"):
            return replace(report, original_id=ids[0])
    return report
