"""Faults: what the sandbox does wrong on demand, for the next calls or events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar


class CallFault(StrEnum):
    """What a call gets instead of its answer."""

    ERROR_500 = "500"
    ERROR_503 = "503"
    LIMITED = "limited"  # 429 with Retry-After
    INTERNAL = "internal_error"  # 200, and "ok": false
    REVOKED = "token_revoked"
    GARBLED = "garbled"  # 200, and a body that is no JSON
    HANG = "hang"  # no answer, the socket stays open
    DROP = "drop"  # no answer, the socket is closed


class EventFault(StrEnum):
    """What happens to an event on its way."""

    DROP = "drop"  # its first copy is lost; Slack's retries are not
    LOSE = "lose"  # all copies are lost
    DUPLICATE = "duplicate"
    HOLD = "hold"  # it is told after the next one


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRule:
    """A fault for the next *count* calls of a method; ``done``: the call took effect anyway."""

    fault: CallFault
    method: str = ""
    count: int = 1
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRule:
    """A fault for the next *count* events of a type."""

    fault: EventFault
    type: str = ""
    count: int = 1


Rule = TypeVar("Rule", CallRule, EventRule)


@dataclass(slots=True)
class Faults:
    """The rules that still hold, oldest first."""

    calls: list[CallRule] = field(default_factory=list)
    events: list[EventRule] = field(default_factory=list)

    def on_call(self, method: str) -> CallRule | None:
        """Return the fault of a call, and count it."""
        for index, rule in enumerate(self.calls):
            if rule.method in {"", method}:
                self.calls[index : index + 1] = _rest(rule)
                return rule
        return None

    def on_event(self, kind: str) -> EventRule | None:
        """Return the fault of an event, and count it."""
        for index, rule in enumerate(self.events):
            if rule.type in {"", kind}:
                self.events[index : index + 1] = _rest(rule)
                return rule
        return None

    def clear(self) -> None:
        """Forget all rules."""
        self.calls.clear()
        self.events.clear()


def _rest(rule: Rule) -> list[Rule]:
    return [replace(rule, count=rule.count - 1)] if rule.count > 1 else []
