"""Heard: what the scripted model reads in a request's messages, and nothing else it knows of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from upright.llm.scripted.found import objects_in

Messages = Sequence[Mapping[str, Any]]
_HEADER: Final = re.compile(
    r"^\[\d+ of \d+\] trigger (?P<id>tr_\w+) kind=(?P<kind>\S+) .*?thread=\S+"
    r"(?: \((?P<hint>.*)\))?$",
    re.MULTILINE,
)
_FOLLOWED: Final = re.compile(r"followed by (wk_\w+)")
_KNOWN: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One trigger of a batch: its text, and the open item whose worker follows its thread."""

    id: str
    kind: str
    text: str
    follower: str

    def number(self, name: str) -> int:
        """Return the number that the text gives under a name; 0 without one."""
        found = re.search(rf"\b{name}=(\d+)", self.text)
        return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call that was answered: what it was given, and what it was told."""

    tool: str
    given: Mapping[str, Any]
    told: Mapping[str, Any]


def triggers(messages: Messages) -> list[Heard]:
    """Return the triggers of all batches, in their order."""
    said = [str(one.get("content")) for one in messages if one.get("role") == "user"]
    return [trigger for text in said for trigger in _batch(text)]


def calls(messages: Messages) -> list[Called]:
    """Return the calls that were answered, in the order of their answers."""
    made, found = dict[str, tuple[str, str]](), list[Called]()
    for one in messages:
        for call in one.get("tool_calls") or ():
            function = call["function"]
            made[call["id"]] = (function["name"], function["arguments"])
        if one.get("role") == "tool":
            tool, given = made[one["tool_call_id"]]
            found.append(Called(tool=tool, given=_object(given), told=_object(str(one["content"]))))
    return found


@lru_cache(maxsize=_KNOWN)
def _object(text: str) -> Mapping[str, Any]:
    """Return the first object of a text: what a tool shows of the world stands in a block."""
    return next(objects_in(text), {})


@lru_cache(maxsize=_KNOWN)
def _batch(text: str) -> tuple[Heard, ...]:
    return tuple(_parts(text))


def _parts(text: str) -> Iterator[Heard]:
    heads = list(_HEADER.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)] if heads else []
    for head, end in zip(heads, ends, strict=True):
        body = next(objects_in(text[head.end() : end]), {})
        follower = _FOLLOWED.search(head["hint"] or "")
        yield Heard(
            id=head["id"],
            kind=head["kind"],
            text=str(body.get("text", "")),
            follower=follower[1] if follower else "",
        )
