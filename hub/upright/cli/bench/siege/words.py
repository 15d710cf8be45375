"""Words: what the clients of a siege say, to whom, and by which key the hub must know it again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from upright.cli.bench.draw import Dice
from upright.cli.bench.load import FIRST_ID, Pattern
from upright.cli.demo.stage import BOT, MEMBER

T = TypeVar("T")

STRANGER: Final = "passer-by"
LISTED_BOT: Final = "helper[bot]"
UNKNOWN_BOT: Final = "spam[bot]"
EACH: Final = 1_000_000
"""How many ids a client has for its own."""
ELSEWHERE: Final = 9_000
"""From here on issues are nobody's: no work is ever opened there."""
PLACES: Final = 40
BURST: Final = 5


class Word(StrEnum):
    """What a worker is asked to do; the script knows each."""

    TIMER = "timer"
    THREAD = "thread"
    ASK = "ask"
    HANDBACK = "handback"
    CHILD = "child"
    FAIL = "fail"


class Turn(StrEnum):
    """What a client does next."""

    REQUEST = "request"  # a member asks the bot for something
    TALK = "talk"  # anybody, on a thread that may have a worker
    NOISE = "noise"  # anybody, elsewhere
    AGAIN = "again"  # an earlier delivery once more
    EDIT = "edit"  # an earlier comment, changed
    BURST = "burst"  # several comments on one thread, one right after the other


WEIGHTS: Final[Mapping[Turn, int]] = {
    Turn.REQUEST: 4,
    Turn.TALK: 7,
    Turn.NOISE: 42,
    Turn.AGAIN: 14,
    Turn.EDIT: 9,
    Turn.BURST: 2,
}
_TALKERS: Final = (MEMBER, MEMBER, STRANGER, STRANGER, LISTED_BOT, UNKNOWN_BOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One comment, or one edit of it (``version`` above 0), by whom and on which issue."""

    number: int
    thread: int
    author: str
    text: str
    version: int = 0

    @property
    def key(self) -> str:
        """Return the key by which the connector knows this very event again."""
        action = "edited" if self.version else "created"
        return f"comment:{self.number}:{action}:{_at(self.version) if self.version else ''}"

    def body(self, pattern: Pattern) -> bytes:
        """Write it as GitHub would deliver it."""
        body: dict[str, Any] = json.loads(json.dumps(pattern.body))
        account = {"login": self.author, "type": "Bot" if "[bot]" in self.author else "User"}
        body["action"] = "edited" if self.version else "created"
        body["comment"] |= {
            "id": self.number,
            "body": self.text,
            "user": {**body["comment"]["user"], **account},
            "created_at": _at(0),
            "updated_at": _at(self.version),
        }
        body["sender"] |= account
        body["issue"]["number"] = self.thread
        return json.dumps(body, separators=(",", ":")).encode()


def _at(version: int) -> str:
    """Return the time of a version, as GitHub writes it."""
    return f"2026-01-01T{version // 3600 % 24:02}:{version // 60 % 60:02}:{version % 60:02}Z"


@dataclass(slots=True, kw_only=True)
class Pen:
    """Draws what one client says; ``threads`` are the issues on which work may be opened."""

    client: int
    threads: int
    words: Sequence[Word]
    dice: Dice
    said: list[Said] = field(default_factory=list)
    _edits: dict[int, int] = field(default_factory=dict)

    def next(self) -> list[Said]:
        """Draw what is said next, in its order; what is said for the first time is remembered."""
        turn = self._turn()
        if not self.said and turn in {Turn.AGAIN, Turn.EDIT}:
            turn = Turn.NOISE
        match turn:
            case Turn.REQUEST:
                return [self._new(self._thread(), MEMBER, f"@{BOT} {self._word()} please")]
            case Turn.TALK:
                return [self._new(self._thread(), self._one_of(_TALKERS), "Any news?")]
            case Turn.NOISE:
                place = ELSEWHERE + self.dice.below(PLACES)
                return [self._new(place, self._one_of(_TALKERS), "Any news elsewhere?")]
            case Turn.AGAIN:
                return [self._one_of(self.said)]
            case Turn.EDIT:
                return [self._edit(self._one_of(self.said))]
            case Turn.BURST:
                thread, author = self._thread(), self._one_of((MEMBER, STRANGER))
                return [self._new(thread, author, f"And {n}") for n in range(BURST)]

    def _turn(self) -> Turn:
        drawn = self.dice.below(sum(WEIGHTS.values()))
        for turn, weight in WEIGHTS.items():
            drawn -= weight
            if drawn < 0:
                return turn
        return Turn.NOISE

    def _new(self, thread: int, author: str, text: str) -> Said:
        number = FIRST_ID + self.client * EACH + len(self.said) + 1
        made = Said(number=number, thread=thread, author=author, text=f"{text} ({number})")
        self.said.append(made)
        return made

    def _edit(self, old: Said) -> Said:
        version = self._edits.get(old.number, 0) + 1
        self._edits[old.number] = version
        return replace(old, text=f"{old.text} Edited {version}.", version=version)

    def _thread(self) -> int:
        return 1 + self.dice.below(self.threads)

    def _word(self) -> Word:
        return self._one_of(self.words)

    def _one_of(self, choices: Sequence[T]) -> T:
        return choices[self.dice.below(len(choices))]
