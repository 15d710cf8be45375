"""Composing: an effect becomes the bytes of a reply: in every try the same, but for the date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final

from upright.api import Effect, PermanentSendError
from upright_mail.headers import ADDRESS
from upright_mail.keys import is_answer, own_id

MAX_TEXT_CHARS: Final = 200_000
_POLICY: Final = SMTP.clone(cte_type="7bit")  # what every server takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A mail that is ready to go; ``answers`` and ``prompt`` are what its budget is about."""

    message_id: str
    sender: str
    recipient: str
    raw: bytes
    answers: tuple[str, ...]  # ids of the conversation's mails, that which is answered last
    prompt: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who we are in what we send."""

    address: str
    name: str = ""


def compose(effect: Effect, writer: Writer, now: datetime) -> Letter:
    """Write the reply that an effect is.

    Raises:
        PermanentSendError: it is no mail, or has no address that a mail can go to.
    """
    place = effect.destination
    parts: Mapping[str, str] = dict(place.address)
    answers, to = parts.get("message_id", ""), parts.get("to", "")
    if place.kind != "mail" or not (ADDRESS.fullmatch(to) and to.isascii()):
        reason = f"No destination of mail: {place.kind} {to!r}"
        raise PermanentSendError(reason)
    if not effect.text.strip():
        raise PermanentSendError("There is nothing to say")
    if len(effect.text) > MAX_TEXT_CHARS:
        reason = f"The text has {len(effect.text)} characters; a mail may have {MAX_TEXT_CHARS}"
        raise PermanentSendError(reason)
    message_id = own_id(
        effect.idempotency_key, answers or effect.idempotency_key, writer.address.rpartition("@")[2]
    )
    try:
        raw = _bytes(effect, parts, writer, message_id=message_id, now=now)
    except ValueError as error:
        reason = f"No mail can be made of it: {error}"
        raise PermanentSendError(reason) from error
    return Letter(
        message_id=message_id,
        sender=writer.address,
        recipient=to,
        raw=raw,
        answers=tuple(parts.get("references", answers).split()) or (to,),
        prompt=parts.get("prompt", "") == "yes",
    )


def _bytes(
    effect: Effect, parts: Mapping[str, str], writer: Writer, *, message_id: str, now: datetime
) -> bytes:
    mail = EmailMessage(policy=_POLICY)
    mail["From"] = Address(display_name=_line(writer.name), addr_spec=writer.address)
    mail["To"] = Address(display_name=_line(parts.get("name", "")), addr_spec=parts["to"])
    mail["Subject"] = _subject(_line(parts.get("subject", "")))
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = message_id
    if answers := parts.get("message_id", ""):
        mail["In-Reply-To"] = _line(answers)
        mail["References"] = _line(parts.get("references", "") or answers)
    mail["Auto-Submitted"] = "auto-replied"  # RFC 3834: robots must not answer this
    mail["X-Auto-Response-Suppress"] = "All"  # the same, as Exchange reads it
    text = effect.text.rstrip("\n") + "\n"
    mail.set_content(text)
    return mail.as_bytes()


def _subject(subject: str) -> str:
    return subject if is_answer(subject) else f"Re: {subject}".rstrip()


def _line(value: str) -> str:
    """Return what may stand in a header: one line."""
    return " ".join(value.split())
