"""Headers: a mail's header lines as they came, each read behind a guard of its own.

The old parser of the standard library (``compat32``) keeps lines raw and never raises on them; the
new one raises on about 2 % of real mail, and takes seconds for a list of thousands of addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import getaddresses, parsedate_to_datetime
from typing import Final, TypeVar

from upright_mail.charset import header_text, plain_text

T = TypeVar("T")
MAX_VALUE_CHARS: Final = 65_536
MAXADDRESSES: Final = 500
MAX_IDS: Final = 100
MIME_TROUBLE: Final = (
    # what the standard library's parsers have been seen to raise on mail
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
    OverflowError,
    RecursionError,
)
_ID: Final = re.compile(r"<([^<>\s]{1,900})>")
ADDRESS: Final = re.compile(r"[^\s@<>(),;:\"]+@[^\s@<>(),;:\"]+")


def guarded(read: Callable[[], T], otherwise: T) -> T:
    """Return what *read* returns; *otherwise* where the mail defeats the parser."""
    try:
        return read()
    except MIME_TROUBLE:
        return otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailbox:
    """An address in lower case, and the name that stands beside it."""

    address: str
    name: str = ""

    @property
    def domain(self) -> str:
        """What stands behind the at sign."""
        return self.address.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class Headers:
    """All header lines in their order, names in lower case, values raw."""

    lines: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, items: Iterable[tuple[str, object]]) -> Headers:
        """Keep what a parser found."""
        return cls(tuple((name.lower(), str(value)[:MAX_VALUE_CHARS]) for name, value in items))

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value of a name, raw."""
        return tuple(value for each, value in self.lines if each == name)

    def raw(self, name: str) -> str:
        """Return the first value of a name, raw; empty when there is none."""
        return next((value for each, value in self.lines if each == name), "")

    def has(self, name: str) -> bool:
        """Tell whether there is such a line."""
        return any(each == name for each, _ in self.lines)

    def text(self, name: str) -> str:
        """Return the first value as people read it."""
        return guarded(lambda: header_text(self.raw(name)), "")

    def word(self, name: str) -> str:
        """Return the first value up to its parameters and comments, in lower case."""
        return re.split(r"[;(]", self.text(name), maxsplit=1)[0].strip().lower()

    def ids(self, name: str) -> tuple[str, ...]:
        """Return the message ids of a line, with their angle brackets, each once."""
        found = _ID.findall(re.sub(r"\s*\r?\n\s+", " ", " ".join(self.all(name))))
        ids = tuple(dict.fromkeys(f"<{plain_text(one)}>" for one in found))
        return ids if len(ids) <= MAX_IDS else (ids[0], *ids[1 - MAX_IDS :])

    def mailboxes(self, name: str) -> tuple[Mailbox, ...]:
        """Return the addresses of all lines of a name, groups opened, at most 500."""
        return guarded(lambda: self._mailboxes(name), ())

    def _mailboxes(self, name: str) -> tuple[Mailbox, ...]:
        values = [re.sub(r"\r?\n(?=[ \t])", "", value) for value in self.all(name)]
        found = list[Mailbox]()
        for shown, address in getaddresses(values)[:MAXADDRESSES]:
            if hit := ADDRESS.fullmatch(plain_text(address).strip()):
                found.append(Mailbox(address=hit[0].lower(), name=header_text(shown)))
        if not found:  # what is too broken to be parsed: the first thing that looks like one
            found = [Mailbox(address=hit[0].lower()) for v in values for hit in [_near(v)] if hit]
        return tuple(found)

    def date(self) -> datetime | None:
        """Return the date, aware; None when it can't be read."""
        value = self.raw("date").strip()
        at = guarded(lambda: parsedate_to_datetime(value), None) if value else None
        if at is None:
            return None
        return at if at.tzinfo else at.replace(tzinfo=UTC)


def _near(value: str) -> re.Match[str] | None:
    return ADDRESS.search(plain_text(value))
