"""Settings of one mailbox."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from upright.api import SecretRef

MAX_MAIL_BYTES: Final = 10 * 1024 * 1024
NOTICED_S: Final = 60.0  # a dead line is noticed within this
REIDLE_S: Final = 9 * 60.0  # RFC 2177 says 29 minutes; many firewalls forget a line after ten
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class Tls(StrEnum):
    """How a connection is made safe: from the start, by STARTTLS, or not (loopback only)."""

    IMPLICIT = "implicit"
    STARTTLS = "starttls"
    NONE = "none"


class Senders(StrEnum):
    """When a sender is who ``From`` says.

    ``verified``: our own server's Authentication-Results say so. ``as_written``: always; only where
    the server itself refuses what is forged.
    """

    VERIFIED = "verified"
    AS_WRITTEN = "as_written"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where a server is: ``port`` 0 is the usual one for its ``tls``."""

    host: str
    port: int = 0
    tls: Tls = Tls.IMPLICIT

    def __post_init__(self) -> None:
        if not self.host.strip():
            raise ValueError("host must name a server")
        if self.tls is Tls.NONE and self.host not in _LOOPBACK:
            raise ValueError("tls must not be none: the password would travel in clear")
        if not 0 <= self.port < 65_536:
            raise ValueError("port must be a port, or 0 for the usual one")


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    """Keys of ``[sources.NAME]`` with ``connector = "mail"``.

    ``addresses`` are our own; the first one writes. ``imap`` is where mail is read, ``smtp`` where
    replies go out; without it nothing is sent. ``password`` is that of ``user`` at both.
    ``authserv_id`` is the name that our own mail server writes first in Authentication-Results.
    ``allow`` are senders (``ann@example.org`` or ``@example.org``) to listen to; none: all.
    ``sent_folder`` keeps what we sent, and tells after a crash what went out.

    ``idle_s`` is how long a silent line is trusted, ``timeout_s`` how long an answer may take;
    together they are how soon a dead line is noticed. ``poll_s`` is for servers without IDLE.
    ``answers_per_hour`` bounds our answers in one thread; to what comes back within
    ``prompt_s`` of our own mail, as robots answer, there is one an hour. ``zone`` is where the
    hours of meetings are shown.

    Raises:
        ValueError: a value that can't work, named by its key.
    """

    addresses: tuple[str, ...]
    imap: ServerSettings
    user: str
    password: SecretRef
    smtp: ServerSettings | None = None
    name: str = ""
    folders: tuple[str, ...] = ("INBOX",)
    sent_folder: str = ""
    senders: Senders = Senders.VERIFIED
    authserv_id: str = ""
    allow: tuple[str, ...] = ()
    max_mail_bytes: int = MAX_MAIL_BYTES
    idle_s: float = 30.0
    timeout_s: float = 20.0
    poll_s: float = 60.0
    answers_per_hour: int = 12
    prompt_s: float = 20.0
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if not self.addresses or not all("@" in address for address in self.addresses):
            raise ValueError("addresses must name our own mail address")
        if not self.folders:
            raise ValueError("folders must name one folder at least")
        if (
            not 0 < self.idle_s + self.timeout_s <= NOTICED_S
            or min(self.idle_s, self.timeout_s) <= 0
        ):
            raise ValueError("idle_s and timeout_s must be above 0, and together at most 60")
        if not 0 < self.poll_s <= REIDLE_S:
            raise ValueError("poll_s must be above 0 and at most 540")
        if self.max_mail_bytes < 1024:
            raise ValueError("max_mail_bytes must be 1024 or more")
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError("zone must be a zone such as Europe/Lisbon") from error
        if self.answers_per_hour < 1 or self.prompt_s < 0:
            raise ValueError("answers_per_hour must be 1 or more, prompt_s 0 or more")

    def is_own(self, address: str) -> bool:
        """Tell whether an address is ours."""
        return address.lower() in {own.lower() for own in self.addresses}

    def allows(self, address: str) -> bool:
        """Tell whether a sender is listened to."""
        if not self.allow:
            return True
        address = address.lower()
        return any(
            address.endswith(one.lower()) if one.startswith("@") else address == one.lower()
            for one in self.allow
        )
