"""Remarks: what one source knows of another one's trigger becomes facts, before it is stored.

A mail invites to a meeting; the calendar knows what stands in its way. Neither knows the other.
What a source looks at may be large, and somebody else's: it looks in a thread, and not for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from upright.api import Capabilities, Trigger

log = logging.getLogger(__name__)

MOST: Final = 10  # facts of one source on one trigger
WITHIN_S: Final = 2.0
AT_ONCE: Final = 4  # threads that look; whoever comes then is stored without remarks


class Knows(Protocol):
    """A source that may have something to say."""

    def capabilities(self) -> Capabilities:
        """Say whether it makes remarks."""
        ...

    def remarks(self, trigger: Trigger) -> tuple[tuple[str, str], ...]:
        """Say what it knows."""
        ...


class Remarks:
    """Completes what comes, off the event loop; who looks too long says nothing (B2.6)."""

    def __init__(self, lives: Mapping[str, Knows], *, within_s: float = WITHIN_S) -> None:
        self._lives = lives
        self._within_s = within_s
        self._looking = 0

    async def __call__(self, source: str, triggers: Sequence[Trigger]) -> Sequence[Trigger]:
        """Return the triggers with what the other sources know, or as they are when it takes long.

        A thread can't be stopped: one that is late counts until it ends.
        """
        others = (name for name in self._lives if name != source)
        if not any(_knows(name, self._lives[name]) for name in others):
            return triggers
        if self._looking >= AT_ONCE:
            log.warning("source.remarks_late", extra={"source": source, "looking": self._looking})
            return triggers
        self._looking += 1
        loop = asyncio.get_running_loop()
        looks = loop.run_in_executor(None, remarked, self._lives, source, triggers)
        looks.add_done_callback(self._looked)
        try:
            async with asyncio.timeout(self._within_s):
                return await asyncio.shield(looks)
        except TimeoutError:
            log.warning("source.remarks_late", extra={"source": source, "looking": self._looking})
            return triggers

    def _looked(self, _done: asyncio.Future[Sequence[Trigger]]) -> None:
        self._looking -= 1


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
