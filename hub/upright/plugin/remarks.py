"""Remarks: what one source knows of another one's trigger becomes facts, before it is stored.

A mail invites to a meeting; the calendar knows what stands in its way. Neither knows the other.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from upright.api import Capabilities, Trigger

log = logging.getLogger(__name__)

MOST: Final = 10  # facts of one source on one trigger


class Knows(Protocol):
    """A source that may have something to say."""

    def capabilities(self) -> Capabilities:
        """Say whether it makes remarks."""
        ...

    def remarks(self, trigger: Trigger) -> tuple[tuple[str, str], ...]:
        """Say what it knows."""
        ...


def remarked(
    lives: Mapping[str, Knows], source: str, triggers: Sequence[Trigger]
) -> Sequence[Trigger]:
    """Return the triggers with what the other sources know; one that breaks says nothing."""
    others = {name: life for name, life in lives.items() if name != source and _knows(name, life)}
    if not others:
        return triggers
    return [_completed(trigger, others) for trigger in triggers]


def _knows(name: str, life: Knows) -> bool:
    try:
        return life.capabilities().remarks
    except Exception:
        log.exception("source.remarks_broke", extra={"source": name})
        return False


def _completed(trigger: Trigger, others: Mapping[str, Knows]) -> Trigger:
    found: list[tuple[str, str]] = []
    for name, life in others.items():
        try:
            found += life.remarks(trigger)[:MOST]
        except Exception:
            log.exception("source.remarks_broke", extra={"source": name})
    if not found:
        return trigger
    facts = (*trigger.context.facts, *found)
    return replace(trigger, context=replace(trigger.context, facts=facts))
