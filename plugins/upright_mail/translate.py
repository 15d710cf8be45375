"""Translation: a mail becomes one trigger, whatever it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

from upright.api import (
    Actor,
    ActorKind,
    Address,
    Channel,
    Content,
    Context,
    Destination,
    Trigger,
)
from upright_mail.headers import Mailbox
from upright_mail.keys import OWN, Keys, bare_subject, is_answer
from upright_mail.mime import Mail
from upright_mail.nature import Nature, is_list, nature
from upright_mail.quotes import own_words
from upright_mail.settings import MailSettings, Senders
from upright_mail.verdict import Verdict, verdict

MAX_REFERENCES: Final = 20
MAX_FACT_CHARS: Final = 500
UNVERIFIED: Final = "unverified:"
NOBODY: Final = Mailbox(address="unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """What the server says of a mail: where it lies, when it came, and whether it was cut.

    ``resembles`` is an earlier mail that this one may answer, by subject and people alone.
    """

    folder: str = "INBOX"
    at: datetime | None = None
    truncated: bool = False
    more_attachments: tuple[str, ...] = ()
    resembles: str = ""
    prompt: bool = False  # came back so soon after our own mail as robots answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A mail, and what all parts of its trigger need to know of it."""

    mail: Mail
    arrived: Arrived
    sender: Mailbox
    verified: bool
    spoofed: bool
    nature: Nature
    own: bool  # we seem to have written it
    message_id: str


class Translator:
    """Makes the triggers of one source."""

    def __init__(self, source: str, settings: MailSettings) -> None:
        self._source = source
        self._settings = settings
        self._keys = Keys(source)

    def trigger(self, mail: Mail, arrived: Arrived) -> Trigger | None:
        """Return a mail's trigger; None for a sender that this source does not listen to."""
        read = self._read(mail, arrived)
        if not self._is_heard(read):
            return None
        text = own_words(mail.text)
        address = self._address(read, text)
        speaks = read.nature is Nature.MESSAGE and not read.own
        reply_to = self._reply_to(read) if speaks and not is_list(mail) else None
        return Trigger(
            kind=read.nature.value,
            channel=Channel.MAIL,
            actor=self._actor(read),
            content=Content(
                title=mail.subject,
                text=text,
                full=mail.text if mail.text != text else "",
                attachments=self._attachments(read),
                expects_reply=address is Address.DIRECT and reply_to is not None,
            ),
            context=self._context(read, address, reply_to),
            dedupe=(self._dedupe(read),),
            occurred_at=mail.date or arrived.at,
            raw=mail.raw,
            raw_type="message/rfc822",
        )

    # -------------------------------------------------------------- who
    def _read(self, mail: Mail, arrived: Arrived) -> _Read:
        sender = next(iter(mail.senders), NOBODY)
        found = verdict(mail.headers, sender, self._settings.authserv_id)
        as_written = self._settings.senders is Senders.AS_WRITTEN and found is not Verdict.FORGED
        single = len(mail.senders) == 1 and len(mail.headers.all("from")) == 1
        verified = single and (found is Verdict.TRUE or as_written)
        own = self._settings.is_own(sender.address)
        return _Read(
            mail=mail,
            arrived=arrived,
            sender=sender,
            verified=verified,
            spoofed=found is Verdict.FORGED or (own and not verified),
            nature=nature(mail),
            own=own,
            message_id=mail.message_id,
        )

    def _is_heard(self, read: _Read) -> bool:
        """Tell whether the sender is on the list; what became of our own mail always is."""
        report = read.mail.report
        if read.own or (report is not None and OWN.fullmatch(report.original_id)):
            return True
        return self._settings.allows(read.sender.address if read.verified else "")

    def _actor(self, read: _Read) -> Actor:
        """Return who wrote; one who may be another has an id that configuration never knows."""
        sender, kind = read.sender, ActorKind.STRANGER
        if read.nature is Nature.NOTIFICATION:
            kind = ActorKind.BOT
        if read.own and read.verified:
            kind = ActorKind.SELF
        shown = sender.address if read.verified else UNVERIFIED + sender.address
        return Actor(id=shown, name=sender.name or sender.address, kind=kind)

    def _address(self, read: _Read, text: str) -> Address:
        headers = read.mail.headers
        if any(self._settings.is_own(one.address) for one in headers.mailboxes("to")):
            return Address.DIRECT
        own = (line for line in text.lower().split("\n") if not line.startswith(">"))
        said, mine = "\n".join(own), self._settings.addresses
        called = (f"@{one.partition('@')[0]}" for one in mine)
        named = any(one.lower() in said.replace(",", " ").split() for one in (*mine, *called))
        return Address.MENTION if named else Address.NONE

    # -------------------------------------------------------------- where
    def _context(self, read: _Read, address: Address, reply_to: Destination | None) -> Context:
        thread, joins = self._thread(read)
        return Context(
            thread=thread,
            joins=joins,
            reply_to=reply_to,
            address=address,
            facts=self._facts(read),
        )

    def _thread(self, read: _Read) -> tuple[str, tuple[str, ...]]:
        """Return the key of the thread, and all others: In-Reply-To, then References."""
        keys, mail = self._keys, read.mail
        own = read.message_id or f"<{self._dedupe(read)}>"
        report = mail.report
        answered = (report.original_id,) if report and report.original_id else mail.in_reply_to
        found = [key for one in answered for key in keys.answered(one)]
        for one in reversed(mail.references):
            if one not in answered and OWN.fullmatch(one):
                found += keys.answered(one)[1:] if self._same(mail) else ()
            found.append(keys.under(one, mail.subject))
        if read.arrived.resembles and not found:
            found.append(keys.of(read.arrived.resembles))
        found += [keys.of(own), keys.under(own, mail.subject), keys.hashed(own)]
        first, *others = dict.fromkeys(found)
        return first, tuple(others)

    @staticmethod
    def _same(mail: Mail) -> bool:
        """Tell whether a mail goes on with what it refers to, as far as its subject says."""
        return is_answer(mail.subject) and bool(bare_subject(mail.subject))

    def _reply_to(self, read: _Read) -> Destination | None:
        """Return where an answer goes: fixed now, never guessed later (B15.1)."""
        if read.sender is NOBODY:
            return None
        mail = read.mail
        to = next(iter(mail.headers.mailboxes("reply-to")), read.sender)
        if self._settings.is_own(to.address):
            to = read.sender
        before = mail.references or mail.in_reply_to
        references = (*before, *([read.message_id] if read.message_id else []))
        if len(references) > MAX_REFERENCES:
            references = (references[0], *references[1 - MAX_REFERENCES :])
        address = {
            "to": to.address,
            "name": to.name,
            "subject": mail.subject,
            "message_id": read.message_id,
            "references": " ".join(references),
            "prompt": "yes" if read.arrived.prompt else "",
        }
        pairs = tuple((name, value) for name, value in address.items() if value)
        return Destination(source=self._source, kind="mail", address=pairs)

    # -------------------------------------------------------------- what else
    def _dedupe(self, read: _Read) -> str:
        """Return what a second copy is known by: its id, else what it says."""
        if read.message_id:
            return f"id:{read.message_id}"
        headers = read.mail.headers
        said = "\0".join(
            (*(headers.raw(n) for n in ("date", "from", "to", "subject")), read.mail.text)
        )
        return "content:" + sha256(said.encode("utf-8", "surrogatepass")).hexdigest()

    def _attachments(self, read: _Read) -> tuple[str, ...]:
        names = [one.name for one in read.mail.attachments]
        return tuple(dict.fromkeys((*names, *read.arrived.more_attachments)))

    def _facts(self, read: _Read) -> tuple[tuple[str, str], ...]:
        mail, report = read.mail, read.mail.report
        to, cc = (mail.headers.mailboxes(name) for name in ("to", "cc"))
        answers_to = next(iter(mail.headers.mailboxes("reply-to")), read.sender)
        told = {
            "native_id": read.message_id,
            "folder": read.arrived.folder,
            "sender": read.sender.address,
            "verified": "yes" if read.verified else "no",
            "spoof": "yes" if read.spoofed else "",
            "to": _shown(to),
            "cc": _shown(cc),
            "reply_to": answers_to.address if answers_to.address != read.sender.address else "",
            "list": (mail.headers.text("list-id") or "yes") if is_list(mail) else "",
            "automatic": "" if read.nature is Nature.MESSAGE else "yes",
            "calendar": (mail.calendar.method or "PUBLISH") if mail.calendar else "",
            "truncated": "yes" if read.arrived.truncated else "",
            "resembles": read.arrived.resembles,
        }
        if report is not None:
            told |= {
                "report_of": report.original_id,
                "report_recipient": report.recipient,
                "report_action": report.action,
                "report_status": report.status,
                "report_says": report.diagnostic,
            }
        return tuple((name, value[:MAX_FACT_CHARS]) for name, value in told.items() if value)


def _shown(people: tuple[Mailbox, ...]) -> str:
    return ", ".join(one.address for one in people)
