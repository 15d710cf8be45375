"""Abilities: what an endpoint can do, by its probe or by its refusals; what it lacks degrades."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

STREAMING: Final = "streaming"
TOOLS: Final = "tools"
PARALLEL: Final = "parallel"
SCHEMA: Final = "schema"
JSON: Final = "json"
FORCED: Final = "forced_tool"
USAGE: Final = "usage"
CACHED: Final = "cached"
ABILITIES: Final = (STREAMING, TOOLS, PARALLEL, SCHEMA, JSON, FORCED, USAGE, CACHED)
LACKING: Final[Mapping[str, str]] = MappingProxyType(
    {
        STREAMING: "whole answers are asked for: nothing is heard of one before its end, and an "
        "interrupt that closes the connection may be billed in full",
        TOOLS: "the model can neither route nor work: triggers are taken in and held for you",
        PARALLEL: "one tool call a step: the same work takes more steps",
        SCHEMA: "answers in a shape are asked for as plain JSON, and checked",
        JSON: "answers in a shape are asked for by a tool, or in words, and checked",
        FORCED: "answers in a shape are asked for in words where JSON is refused, too",
        USAGE: "tokens are reckoned, four characters each: budgets are rough",
        CACHED: "what the prompt cache saves isn't known: costs are an upper bound",
    }
)
"""What happens where an ability is missing."""

_STREAMING: Final = re.compile(r"\bstream", re.IGNORECASE)
_TOOLS: Final = re.compile(r"\b(tools?|tool_choice|tool[ _]call\w*|functions?)\b", re.IGNORECASE)
_REFUSES: Final = re.compile(
    r"support|not allowed|not available|unknown|unrecogni[sz]ed|unexpected|extra|disabled|requires",
    re.IGNORECASE,
)


class Abilities:
    """What is known of one endpoint; ``news`` is what was learned since it was last asked for.

    ``reckons`` says that its last answer had no counts.
    """

    def __init__(self) -> None:
        self.reckons = False
        self._known: dict[str, bool] = {}
        self._news: dict[str, bool] = {}

    def has(self, name: str) -> bool | None:
        """Say whether the endpoint has an ability; None: nobody knows yet."""
        return self._known.get(name)

    def learn(self, name: str, *, has: bool) -> None:
        """Take in what an answer or a refusal shows."""
        if self._known.get(name) is not has:
            self._known[name] = self._news[name] = has

    def know(self, stored: Mapping[str, bool]) -> None:
        """Take over what is stored; nothing else is known any more."""
        self._known = {**stored, **self._news}

    def news(self) -> dict[str, bool]:
        """Return what was learned and is not stored yet, and forget that it is news."""
        news, self._news = self._news, {}
        return news

    def keep(self, news: Mapping[str, bool]) -> None:
        """Take back news that could not be stored; what was learned meanwhile is newer."""
        self._news = {**news, **self._news}
        self._known = {**self._known, **self._news}


def blames_streaming(refusal: str) -> bool:
    """Say whether a refusal is for asking for a stream."""
    return bool(_STREAMING.search(refusal) and _REFUSES.search(refusal))


def blames_tools(refusal: str) -> bool:
    """Say whether a refusal is for offering tools at all."""
    return bool(_TOOLS.search(refusal) and _REFUSES.search(refusal))


def degraded(can: Mapping[str, bool]) -> Iterable[str]:
    """Say in sentences what does not work with such an endpoint, and what happens instead."""
    return [f"no {name.replace('_', ' ')}: {LACKING[name]}" for name in ABILITIES if not can[name]]
