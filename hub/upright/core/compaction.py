"""Compaction: when a transcript begins a new generation, and what that one begins with (B5.5).

The card of a generation is made by code of ids and facts from the rows. What a model has written
(a summary, the texts of questions and waits) stands on it only with the trust of what the model
had read: a generation is tainted by what it still contains, and by nothing else (decision 0021).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from upright.core.context import cut
from upright.core.ids import PREFIXES
from upright.core.mandate import Trust
from upright.core.material import escaped
from upright.core.transcript import Message, Role, unanswered

ID: Final = re.compile(rf"\b(?:{'|'.join(sorted(PREFIXES.values()))})_[0-9a-z]{{26}}\b")
SUMMARY_CAP_BYTES: Final = 8 * 1024
LEAST_MESSAGES: Final = 6
"""A generation is at least so long: one that begins over its bound is not begun anew each turn."""
MAX_DECISIONS: Final = 200
LOOKS: Final = frozenset(
    {"agenda", "list", "list_work", "neighbours", "read", "read_file", "read_output", "recall"}
    | {"search", "status"}
)
"""Tools that decide nothing."""
_CARD: Final = re.compile(r"<card generation=\d+ trust=\w+>\n(?P<json>.*)\n</card>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBounds:
    """From how many tokens on the prompt of a kind of agent is compacted; 0: never."""

    router: int = 32_000
    worker: int = 96_000

    def of(self, kind: str) -> int:
        """Return the bound of a kind of agent."""
        return self.router if kind == "router" else self.worker


def due(messages: Sequence[Message], tokens: int, bound: int) -> bool:
    """Say whether a turn that begins is to begin a new generation.

    Never while a call is open: what it does must be told to the model that made it.
    """
    behind = len(messages) - len(tail(messages))
    return 0 < bound < tokens and behind >= LEAST_MESSAGES and not unanswered(messages)


def tail(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return what was said to the model last and not answered yet: the new generation repeats it.

    What is a dead turn's is there, too; nothing that came is lost by a compaction.
    """
    for n in range(len(messages), 0, -1):
        if messages[n - 1].role is not Role.USER:
            return tuple(messages[n:])
    return ()


def call_id(call: str, generation: int) -> str:
    """Return a call's id as it is unique in the session: a model counts anew in each generation."""
    return f"g{generation}_{call}" if generation else call


def prompt_key(session: str, generation: int) -> str:
    """Name the conversation whose prompts are prefixes of one another."""
    return f"{session}.{generation}" if generation else session


# ------------------------------------------------------------------ ids
def ids_in(text: str) -> tuple[str, ...]:
    """Return the ids that a text names, each once, in their order."""
    return tuple(dict.fromkeys(ID.findall(text)))


def known_ids(messages: Iterable[Message]) -> frozenset[str]:
    """Return every id that a generation was told; what a refusal repeats is no news."""
    told = set[str]()
    for message in messages:
        refused = message.role is Role.TOOL and not _worked(message.text)
        if message.role is not Role.ASSISTANT and not refused:
            told.update(ids_in(message.text))
    return frozenset(told)


def checked(summary: str, known: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Return a summary without the ids that nobody had told the model, and those ids."""
    invented = tuple(one for one in ids_in(summary) if one not in known)
    for one in invented:
        summary = summary.replace(one, "")
    return summary, invented


# ------------------------------------------------------------------ decisions
@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A call that changed something, and the ids that it is about: no word of a model."""

    tool: str
    ids: tuple[str, ...]

    def plain(self) -> dict[str, object]:
        """Return what stands on the card."""
        return {"did": self.tool, "ids": list(self.ids)}


def decisions(messages: Sequence[Message]) -> tuple[Decision, ...]:
    """Return what a generation decided, oldest first, with what its own card had of it already.

    Calls that were refused decided nothing, and what nobody had told the model names nothing.
    """
    answers = {m.call_id: m.text for m in messages if m.role is Role.TOOL}
    made, known = list(_before(messages)), known_ids(messages)
    for message in messages:
        for call in message.calls:
            answer = answers.get(call.id, "")
            if call.name in LOOKS or not _worked(answer):
                continue
            named = tuple(one for one in ids_in(f"{call.arguments} {answer}") if one in known)
            if named:
                made.append(Decision(tool=call.name[:64], ids=named))
    return tuple(made[-MAX_DECISIONS:])


def _worked(answer: str) -> bool:
    try:
        said = json.loads(answer)
    except ValueError:
        return False
    return isinstance(said, dict) and "error" not in said


def _before(messages: Sequence[Message]) -> Iterable[Decision]:
    """Yield the decisions of the card that a generation began with."""
    card = _CARD.match(messages[1].text) if len(messages) > 1 else None
    if card is None or messages[1].role is not Role.USER:
        return
    for one in json.loads(card["json"])["decisions"]:
        yield Decision(tool=one["did"], ids=tuple(one["ids"]))


# ------------------------------------------------------------------ the card
@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """What must not be lost, read from the rows: plain values by their names on the card.

    ``facts`` are ids, states, times and numbers: code made them. ``words`` are texts verbatim, by
    which the generation is tainted as far as ``trust`` says.
    """

    facts: Mapping[str, object] = field(default_factory=dict)
    words: Mapping[str, object] = field(default_factory=dict)
    trust: Trust = Trust.OPERATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What leaves the context: which session's which generation, how it was tainted, and when.

    ``is_one_thing``: the session is a worker's, whose goal and thread stay what they are.
    """

    session: str
    generation: int
    taint: Trust
    at: str
    is_one_thing: bool
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """How the new generation begins, and its taint. ``inline``: the summary stands on the card."""

    card: str
    taint: Trust
    inline: bool
    invented: tuple[str, ...] = ()


def fresh(past: Past, pins: Pins, summary: str) -> Fresh:
    """Make the card of the generation that follows *past*.

    A model's summary carries the taint of all that it was made from. Where leaving it out makes
    the new generation cleaner than that, it is left out, and its place is named: reading it there
    taints as ever. A worker's taint never rises: what it works on stays what it is.
    """
    repeated = tail(past.messages)
    kept = past.taint if past.is_one_thing or repeated else pins.trust
    inline = bool(summary) and (past.taint >= Trust.MEMBER or kept <= past.taint)
    known = known_ids(past.messages) | _pinned(pins)
    text, invented = checked(summary, known)
    body: dict[str, Any] = {
        "session": past.session,
        "generation": past.generation + 1,
        "as_of": past.at,
        "earlier": f"read({past.session!r}, part='generation:{past.generation}')",
        **pins.words,
        **pins.facts,
        "decisions": [one.plain() for one in decisions(past.messages)],
    }
    if inline:
        where = f"{past.session}, part='summary:{past.generation}'"
        body["summary"] = cut(text, SUMMARY_CAP_BYTES, where=where)
    elif summary:
        body["summary"] = (
            f"read({past.session!r}, part='summary:{past.generation}') has it, written after"
            f" {past.taint.label} text: reading it makes this session as little trusted"
        )
    taint = min(kept, past.taint) if inline else kept
    card = f"<card generation={past.generation + 1} trust={taint.label}>\n{escaped(body)}\n</card>"
    return Fresh(card=card, taint=taint, inline=inline, invented=invented)


def _pinned(pins: Pins) -> frozenset[str]:
    return frozenset(ids_in(json.dumps([dict(pins.facts), dict(pins.words)])))
