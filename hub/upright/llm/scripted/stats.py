"""Stats: what a scripted server has served, for checks from outside."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import asdict, dataclass, field
from typing import Any, Final

LAST_PROMPTS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One call that was answered; ``fault`` is empty when nothing went wrong with it."""

    agent: str
    rule: str
    model: str
    conversation: str
    tools: str
    sha256: str
    prompt_bytes: int
    cached_bytes: int
    bust: bool
    fault: str = ""


@dataclass(slots=True)
class Stats:
    """Counts over all calls, and the last calls themselves."""

    by_agent: Counter[str] = field(default_factory=Counter)
    by_tools: Counter[str] = field(default_factory=Counter)
    by_rule: Counter[str] = field(default_factory=Counter)
    by_fault: Counter[str] = field(default_factory=Counter)
    cache: Counter[str] = field(default_factory=Counter)
    last: deque[Served] = field(default_factory=lambda: deque(maxlen=LAST_PROMPTS))

    def refused(self, fault: str) -> None:
        """Count a call that got an error for an answer."""
        self.by_fault[fault] += 1

    def served(self, call: Served) -> None:
        """Count a call that was answered."""
        self.by_agent[call.agent] += 1
        self.by_tools[call.tools] += 1
        self.by_rule[call.rule] += 1
        if call.fault:
            self.by_fault[call.fault] += 1
        self.cache["prompt_bytes"] += call.prompt_bytes
        self.cache["cached_bytes"] += call.cached_bytes
        self.cache["hits"] += call.cached_bytes > 0
        self.cache["busts"] += call.bust
        self.last.append(call)

    def report(self) -> dict[str, Any]:
        """Return everything as JSON values; refused calls are in ``faults`` alone."""
        cache = {key: self.cache[key] for key in ("prompt_bytes", "cached_bytes", "hits", "busts")}
        return {
            "calls": sum(self.by_agent.values()),
            "by_agent": dict(self.by_agent),
            "by_tools": dict(self.by_tools),
            "by_rule": dict(self.by_rule),
            "faults": dict(self.by_fault),
            "cache": cache,
            "last": [asdict(call) for call in self.last],
        }
