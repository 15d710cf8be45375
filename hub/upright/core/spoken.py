"""Spoken: what a person types in chat to answer a request; everything else is text (B14.3).

The whole message is one of three forms: ``approve rq_… DIGEST``, ``deny rq_…``,
``answer rq_… TEXT``. The id may be unfinished, the digest too; how far, whoever follows it says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upright.api import ActorKind, Channel, Trigger

_FORM: Final = re.compile(
    r"(?P<word>approve|deny|answer)[ \t]+(?P<request>rq_[0-9a-z]{6,26})(?:\s+(?P<rest>.+))?",
    re.IGNORECASE | re.DOTALL,
)
_DIGEST: Final = re.compile(r"[0-9a-f]{1,64}", re.IGNORECASE)
LATE: Final = ("late", "yes")


class Word(StrEnum):
    """What a person may say."""

    APPROVE = "approve"
    DENY = "deny"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """An answer as it was typed: to a request, or the beginning of its id."""

    word: Word
    request: str
    digest: str = ""
    text: str = ""


def read(typed: str) -> Spoken | None:
    """Read what was typed, whole; None: it is no answer."""
    found = _FORM.fullmatch(typed.strip())
    if found is None:
        return None
    word, request = Word(found["word"].lower()), found["request"].lower()
    rest = (found["rest"] or "").strip()
    if word is Word.ANSWER:
        return Spoken(word=word, request=request, text=rest)
    if word is Word.APPROVE and (not rest or _DIGEST.fullmatch(rest)):
        return Spoken(word=word, request=request, digest=rest.lower())
    return None if rest else Spoken(word=word, request=request)


def heard(trigger: Trigger) -> Spoken | None:
    """Read a message as an answer; None for what can't be one, whatever it says.

    Nobody but an operator answers, and by what they have just typed themselves.
    """
    is_chat = trigger.channel is Channel.CHAT and trigger.actor.kind is ActorKind.OPERATOR
    is_new = not trigger.context.edit_of and not trigger.content.attachments
    return read(trigger.content.typed) if is_chat and is_new else None


def is_late(trigger: Trigger) -> bool:
    """Say whether a message was learned of by catching up."""
    return LATE in trigger.context.facts
