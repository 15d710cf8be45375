"""Recall: the one shape in which whatever is stored is shown, to people and to models (B7.1).

First what the object is, then the ids of its relatives, then a little of what is near, then its
text, a page at a time (B7.2). Pages are cut between characters as readers see them (B7.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from upright.core.graphemes import beginning, boundary
from upright.core.mandate import Trust

PAGE_CHARS: Final = 16_000
NEAR_CHARS: Final = 50
SUMMARY_CHARS: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A relative: what it is to the object that is shown, and its id. Each edge has one back."""

    what: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Something near: its id, whose it is, and how its text begins."""

    id: str
    by: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An object as a reader finds it.

    ``facts``: plain values by name. ``parts``: what else ``read`` knows of it. ``fixed``: the text
    never changes, so that no snapshot is needed to read on. ``trust`` is of the least trusted that
    is shown; ``private``: it belongs to a conversation that is not for everybody. ``pruned`` says
    when what is missing went.
    """

    id: str
    kind: str
    summary: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    relatives: tuple[Edge, ...] = ()
    nearby: tuple[Beside, ...] = ()
    text: str = ""
    part: str = ""
    parts: tuple[str, ...] = ()
    fixed: bool = False
    trust: Trust = Trust.OPERATOR
    private: bool = False
    pruned: str = ""


def page(shown: Shown, offset: int = 0, chars: int = PAGE_CHARS) -> dict[str, Any]:
    """Return what is read at *offset*, in characters: all of the object, or only the next page.

    ``read_on_at`` is there while there is more; an offset behind the end gives an empty text.
    """
    end = boundary(shown.text, min(offset, len(shown.text)) + chars)
    head: dict[str, Any] = {"id": shown.id, "kind": shown.kind, "trust": shown.trust.label}
    if offset == 0:
        head |= _whole(shown)
    elif shown.part:
        head["part"] = shown.part
    if offset:
        head["offset"] = offset
    head["text"] = shown.text[offset:end]
    if end < len(shown.text):
        head |= {"total": len(shown.text), "read_on_at": end}
    return head


def _whole(shown: Shown) -> dict[str, Any]:
    """Return what stands before the text, in B7.2's order; what is empty is left out."""
    body: dict[str, Any] = {"summary": one_line(shown.summary), **shown.facts}
    for edge in shown.relatives:
        body.setdefault("relatives", {}).setdefault(edge.what, []).append(edge.id)
    if shown.nearby:
        body["nearby"] = [
            {"id": one.id, "by": one.by, "text": beginning(one.text, NEAR_CHARS)}
            for one in shown.nearby
        ]
    if shown.part:
        body["part"] = shown.part
    if shown.parts:
        body["parts"] = list(shown.parts)
    if shown.pruned:
        body["pruned"] = shown.pruned
    return body


def one_line(text: str) -> str:
    """Return the beginning of a text on one line."""
    return beginning(" ".join(text.split()), SUMMARY_CHARS)


def edges(what: str, ids: Sequence[str | None]) -> tuple[Edge, ...]:
    """Make an edge to each of *ids* that is one, each once."""
    return tuple(Edge(what=what, id=one) for one in dict.fromkeys(ids) if one)
