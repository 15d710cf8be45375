"""Triggers and effects: what comes in and what goes out, as frozen values (B1, B15).

Plugins take these from :mod:`upright.api`, which hands them on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ActorKind(StrEnum):
    """Who acted, as configuration says; the text never decides it (B1.3)."""

    OPERATOR = "operator"
    MEMBER = "member"
    CONTACT = "contact"
    STRANGER = "stranger"
    BOT = "bot"
    SYSTEM = "system"
    SELF = "self"


class Channel(StrEnum):
    """How a trigger came."""

    GITHUB = "github"
    CI = "ci"
    CHAT = "chat"
    MAIL = "mail"
    CALENDAR = "calendar"
    TIMER = "timer"
    WEBHOOK = "webhook"
    FILE = "file"
    DATABASE = "database"
    JOB = "job"
    DEVICE = "device"
    OPERATOR = "operator"
    PHONE = "phone"
    SMS = "sms"
    SOCIAL = "social"


class Address(StrEnum):
    """Whether the text speaks to the agent."""

    DIRECT = "direct"
    MENTION = "mention"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who: the provider's stable id, the name shown, and the kind.

    A connector says STRANGER, BOT or SELF; intake raises a stranger to what it knows of the id.
    """

    id: str
    name: str = ""
    kind: ActorKind = ActorKind.STRANGER


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What: a title, the text, and the addresses of what is attached.

    ``full`` is the whole text where ``text`` leaves out what it quotes, as of a mail. ``typed`` is
    what the author typed just now, whole, without the mention of us: by it a request is answered.
    Empty for an edit, a quote, what was forwarded or has something attached, and wherever the
    service does not vouch for who typed it (see ``Capabilities.answers``).
    """

    title: str = ""
    text: str = ""
    full: str = ""
    typed: str = ""
    attachments: tuple[str, ...] = ()
    urgent: bool = False
    expects_reply: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where an answer goes: fixed when the effect is made, never guessed later (B15.1).

    ``address`` is the connector's own: ordered pairs of strings.
    """

    source: str
    kind: str
    address: tuple[tuple[str, str], ...]

    def get(self, key: str) -> str:
        """Return one part of the address; KeyError when it is not there."""
        return dict(self.address)[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The code that a trigger speaks of.

    ``repository`` is the provider's full name (``acme/app``), ``urls`` the clone addresses that a
    device's remotes are matched with. ``fork``: the head was pushed to another repository, thus by
    somebody who may not push to this one (B14.6).
    """

    repository: str
    urls: tuple[str, ...] = ()
    sha: str = ""
    branch: str = ""
    number: int | None = None
    fork: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Background of a trigger.

    ``thread`` is the key of the one thing this is about, unique in the source. ``joins`` are
    further keys of it (a pull request's commits and branch): triggers that share one are one thread
    (B6.10). ``related`` are keys of other threads, to be linked. ``reply_to``: where answers go.
    """

    thread: str
    joins: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    reply_to: Destination | None = None
    address: Address = Address.NONE
    links: tuple[str, ...] = ()
    code: Code | None = None
    edit_of: str = ""  # native id of what this trigger edits or deletes (B1.4)
    facts: tuple[tuple[str, str], ...] = ()  # what rules may match and people may read


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One event from a source, before the hub gave it an id.

    ``kind`` is dotted (``ci.failed``, ``pr.opened``, ``comment.created``). ``dedupe`` holds one
    or more keys, unique in the source; a trigger with any key that was seen is refused (B2.2).
    ``occurred_at`` is the provider's time, aware. ``raw`` is kept whole.
    """

    kind: str
    channel: Channel
    actor: Actor
    content: Content
    context: Context
    dedupe: tuple[str, ...]
    occurred_at: datetime | None = None
    raw: bytes = b""
    raw_type: str = "application/json"


# ------------------------------------------------------------------ effects
class EffectClass(StrEnum):
    """How far an effect reaches; the table of B14.2 decides on it."""

    READ = "read"
    WORK = "work"
    REPLY = "reply"
    REACH = "reach"
    SHELL = "shell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One outward effect, ready to perform: ``text`` goes to ``destination`` once.

    The same ``idempotency_key`` must never become visible twice. ``tries`` counts earlier
    attempts: with one or more of them, look before you send.
    """

    id: str
    destination: Destination
    text: str
    idempotency_key: str
    tries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The provider's proof: its id of what became visible, and where to see it."""

    provider_id: str
    url: str = ""
    found: bool = False  # it was there already: an earlier try had worked


# ------------------------------------------------------------------ calendars
@dataclass(frozen=True, slots=True, kw_only=True)
class Appointment:
    """What takes up time in a calendar: from an aware instant until another; ``title`` is private.

    ``thread`` is the key of the meeting, as in the triggers about it.
    """

    since: datetime
    until: datetime
    title: str = ""
    thread: str = ""
