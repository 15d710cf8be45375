"""Keys: which mails are one thread, spelled in one place.

All keys of a source begin with ``mail:SOURCE/``. Then comes

- ``<ID>``: a mail, by its Message-ID. What says it answers that mail is in its thread, however its
  subject was changed;
- ``<ID> SUBJECT``: a mail, with a digest of its bare subject. What merely stands among a mail's
  references counts only under the same subject: people take an old mail to begin something new;
- ``~DIGEST``: a mail, by a digest of its id. Our own Message-IDs carry the digest of the mail that
  they answer, so an answer to ours is known even where nobody remembers what we sent.

Every mail teaches the three keys of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

MAX_ID_CHARS: Final = 200
OWN: Final = re.compile(r"<upright\.(?P<key>[0-9a-f]{32})\.(?P<answers>[0-9a-f]{24})@[^<>@\s]+>")
_PREFIX: Final = re.compile(
    r"\s*(?:\[[^\]]{1,40}\]\s*)?"
    r"(?:re|aw|antw|sv|vs|odp|rif|ref|ynt|fw|fwd|wg|tr|vb|回复|答复|回覆|答覆|转发|轉寄|返信|転送)"
    r"\s*(?:\[\d+\]|\(\d+\))?\s*[:\uff1a]\s*",
    re.IGNORECASE,
)


def digest(text: str, chars: int) -> str:
    """Return the beginning of a text's SHA-256."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:chars]


def bare_subject(subject: str) -> str:
    """Return a subject without what programs put before it, to be compared."""
    while hit := _PREFIX.match(subject):
        subject = subject[hit.end() :]
    return " ".join(subject.split()).casefold()


def is_answer(subject: str) -> bool:
    """Tell whether a subject says that it answers something."""
    return bool(_PREFIX.match(subject))


def own_id(idempotency_key: str, answers: str, domain: str) -> str:
    """Return the Message-ID of our mail: the same effect has the same id in every try."""
    return f"<upright.{digest(idempotency_key, 32)}.{digest(answers, 24)}@{domain}>"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one source."""

    source: str

    def of(self, message_id: str) -> str:
        """Return the key of a mail."""
        kept = message_id
        if len(message_id) > MAX_ID_CHARS:
            kept = f"<{digest(message_id, 32)}>"
        return f"mail:{self.source}/{kept}"

    def under(self, message_id: str, subject: str) -> str:
        """Return the key of a mail under a subject."""
        return f"{self.of(message_id)} {digest(bare_subject(subject), 12)}"

    def hashed(self, message_id: str) -> str:
        """Return the key by which our own Message-IDs know a mail."""
        return f"mail:{self.source}/~{digest(message_id, 24)}"

    def answered(self, message_id: str) -> tuple[str, ...]:
        """Return the keys of a mail that is answered; if it is ours, of what that answers, too."""
        own = OWN.fullmatch(message_id)
        more = (f"mail:{self.source}/~{own['answers']}",) if own else ()
        return (self.of(message_id), *more)
