"""Memory: what a routing is remembered by, and which memories a question finds (B5.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upright.api import Trigger
from upright.core.mandate import Trust

MAX_TEXT: Final = 1000
MAX_SOURCES: Final = 10
MAX_SAID: Final = 500
"""So many sentences are remembered at once; one more must supersede another."""
MAX_ROUTINGS: Final = 2000
MAX_CUE: Final = 200
_WORD: Final = re.compile(r"\w+")
_LETTER: Final = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]")  # a word by itself


class MemoryKind(StrEnum):
    """How it came to be remembered."""

    ROUTING = "routing"  # code noted what was done with a kind of trigger
    SAID = "said"  # the router wrote a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One entry. ``sources`` are the ids that it is known from, the newest last.

    ``cue`` and ``times`` are a routing's: of which kind of trigger, and how often it came out so.
    """

    id: str
    kind: MemoryKind
    cue: str
    text: str
    sources: tuple[str, ...]
    author: str
    trust: Trust
    times: int
    at_ms: int
    superseded_by: str | None = None


def cue(source: str, trigger: Trigger) -> str:
    """Return what a kind of trigger is remembered by: its source, kind and repository."""
    code = trigger.context.code
    return f"{source} {trigger.kind} {code.repository if code else ''}".rstrip()[:MAX_CUE]


def joined(known: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    """Return sources with newer ones behind them: the last of each, at most ``MAX_SOURCES``."""
    fresh = tuple(dict.fromkeys(more))
    kept = [one for one in known if one not in fresh]
    return tuple([*kept, *fresh][-MAX_SOURCES:])


# ------------------------------------------------------------------ what a question finds
def terms(text: str) -> frozenset[str]:
    """Return the words of a text, in small letters; where none are parted, each sign is one."""
    lowered = text.casefold()
    words = {word for word in _WORD.findall(lowered) if not _LETTER.search(word)}
    return frozenset(words | set(_LETTER.findall(lowered)))


def found(memories: Sequence[Memory], query: str, most: int) -> tuple[Memory, ...]:
    """Return the memories that share words with a question, most words first, then newest.

    An id finds what is known from it. A question without words finds the newest.
    """
    wanted = terms(query)
    scored = [
        (len(wanted & terms(f"{one.cue} {one.text} {' '.join(one.sources)} {one.id}")), one)
        for one in memories
    ]
    chosen = [pair for pair in scored if pair[0] or not wanted]
    chosen.sort(key=lambda pair: (-pair[0], -pair[1].at_ms, pair[1].id))
    return tuple(one for _, one in chosen[:most])
