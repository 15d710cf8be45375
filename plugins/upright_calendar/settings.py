"""Settings of one calendar source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from upright.api import SecretRef

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
MAX_BODY_BYTES: Final = 32 * 1024 * 1024


class Protocol(StrEnum):
    """How the calendar is read."""

    CALDAV = "caldav"
    ICS = "ics"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarSettings:
    """Keys of ``[sources.NAME]`` with ``connector = "calendar"``.

    ``url``: a CalDAV server, a calendar on it, or a feed (``protocol = "ics"``). ``calendars`` are
    names or paths of those to read; none: all. ``zone`` is where the user lives: floating times and
    all-day events are meant there. ``addresses`` are the user's own: who invites them asks for an
    answer, what they declined is not in the way. ``owner`` is the id under which reminders speak;
    empty: the first address. ``alarms``, ``starts``, ``ends`` say which moments make triggers.
    Each ``poll_s`` the calendar is read; ``window_days`` ahead are looked at for moments.

    Raises:
        ValueError: a value that can't work, named by its key.
    """

    url: str
    protocol: Protocol = Protocol.CALDAV
    user: str = ""
    password: SecretRef | None = None
    calendars: tuple[str, ...] = ()
    zone: str = "UTC"
    addresses: tuple[str, ...] = ()
    owner: str = ""
    alarms: bool = True
    starts: bool = True
    ends: bool = False
    poll_s: float = 120.0
    window_days: int = 60
    timeout_s: float = 20.0
    max_body_bytes: int = MAX_BODY_BYTES

    def __post_init__(self) -> None:
        address = urlsplit(self.url)
        if not address.hostname or address.scheme not in {"http", "https"}:
            raise ValueError("url must be an address such as https://dav.example.org/")
        if self.password and address.scheme == "http" and address.hostname not in _LOOPBACK:
            raise ValueError("url must be https: the password would travel in clear")
        if bool(self.user) is not bool(self.password):
            raise ValueError("user and password must be given together")
        try:
            ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError) as error:
            problem = f"zone {self.zone!r} is no zone; take a name such as Europe/Lisbon"
            raise ValueError(problem) from error
        if not 5 <= self.poll_s <= 86_400:
            raise ValueError("poll_s must be between 5 and 86400")
        if not 1 <= self.window_days <= 366:
            raise ValueError("window_days must be between 1 and 366")
        if not 0 < self.timeout_s <= 300:
            raise ValueError("timeout_s must be more than 0 and at most 300")
        if not 1_024 <= self.max_body_bytes <= 256 * 1024 * 1024:
            raise ValueError("max_body_bytes must be between 1024 and 268435456")

    @property
    def own(self) -> frozenset[str]:
        """Return the user's addresses in lower case."""
        return frozenset(address.strip().lower() for address in self.addresses)

    @property
    def speaker(self) -> str:
        """Return the id under which reminders speak."""
        return self.owner or (self.addresses[0].strip().lower() if self.addresses else "calendar")
