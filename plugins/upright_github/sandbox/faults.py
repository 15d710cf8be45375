"""Faults: what the sandbox does wrong on demand, for the next calls or deliveries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar


class RestFault(StrEnum):
    """What a call gets instead of its answer."""

    ERROR_500 = "500"
    ERROR_502 = "502"
    ERROR_503 = "503"
    SECONDARY = "secondary"  # 403, and no word on how long
    SECONDARY_RETRY_AFTER = "secondary_retry_after"
    PRIMARY = "primary"
    GARBLED = "garbled"  # the right status, and a body that is no JSON
    HANG = "hang"  # no answer, the socket stays open
    DROP = "drop"  # no answer, the socket is closed


class DeliveryFault(StrEnum):
    """What happens to a webhook."""

    DROP = "drop"
    DELAY = "delay"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestRule:
    """A fault for the next *count* calls of a method; ``done``: the call took effect anyway."""

    fault: RestFault
    count: int = 1
    method: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRule:
    """A fault for the next *count* webhooks of an event, of any or of one conclusion."""

    fault: DeliveryFault
    count: int = 1
    event: str = ""
    conclusion: str = ""
    delay_s: float = 0.0


Rule = TypeVar("Rule", RestRule, DeliveryRule)


@dataclass(slots=True)
class Faults:
    """The rules that still hold, oldest first."""

    rest: list[RestRule] = field(default_factory=list)
    delivery: list[DeliveryRule] = field(default_factory=list)

    def on_call(self, method: str) -> RestRule | None:
        """Return the fault of a call, and count it."""
        for index, rule in enumerate(self.rest):
            if rule.method in {"", method}:
                self.rest[index : index + 1] = _rest(rule)
                return rule
        return None

    def on_delivery(self, event: str, conclusion: str) -> DeliveryRule | None:
        """Return the fault of a webhook, and count it."""
        for index, rule in enumerate(self.delivery):
            if rule.event in {"", event} and rule.conclusion in {"", conclusion}:
                self.delivery[index : index + 1] = _rest(rule)
                return rule
        return None

    def clear(self) -> None:
        """Forget all rules."""
        self.rest.clear()
        self.delivery.clear()


def _rest(rule: Rule) -> list[Rule]:
    return [replace(rule, count=rule.count - 1)] if rule.count > 1 else []
