"""Reconcile: each source that can list is read for what was missed, so that it comes late but once.

On start, after each reconnect, and on a schedule (B2.3). What a webhook brought already is refused
as a duplicate; what goes wrong moves the source's state by the one table, like any other trouble.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from upright.api import ConnectorError, Trigger
from upright.engine.ports import Clock
from upright.kit.late import late
from upright.plugin.life import Life
from upright.store.errors import StoreError

log = logging.getLogger(__name__)

BATCH: Final = 100


class Keep(Protocol):
    """Stores what a listing brought, and the moment up to which all of it is stored."""

    def __call__(
        self, source: str, triggers: Sequence[Trigger], until: str, /, *, whole: bool
    ) -> Awaitable[None]:
        """Store both in one transaction; ``whole`` says that the listing is at its end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileParts:
    """What reconciling works with; ``since`` is where the last listing of a source got to."""

    clock: Clock
    since: Callable[[str], Awaitable[str | None]]
    keep: Keep
    every_s: float


async def reconcile(life: Life, parts: ReconcileParts) -> None:
    """Read one source whenever it is ready anew, and each ``every_s``; until cancelled."""
    ups = 0
    while True:
        ups = await life.ready(beyond=ups, within_s=parts.every_s if ups else None)
        if life.capabilities().lists:
            await _once(life, parts)


async def _once(life: Life, parts: ReconcileParts) -> None:
    """List once. A failure is the source's, and its state says so; a later try begins again."""
    source, until = life.standing.source, parts.clock.now()
    try:
        count = await _listed(life, parts, until)
    except ConnectorError as error:
        log.warning("source.not_reconciled", extra={"source": source, "why": str(error)})
    except StoreError:  # nothing is lost: the cursor did not move
        log.exception("source.not_reconciled", extra={"source": source})
    else:
        log.info("source.reconciled", extra={"source": source, "triggers": count})


async def _listed(life: Life, parts: ReconcileParts, until: datetime) -> int:
    source, batch, count = life.standing.source, list[Trigger](), 0
    async for trigger in life.backfill(await parts.since(source), until):
        batch.append(late(trigger))
        if len(batch) == BATCH and (reached := _reached(batch)):
            await parts.keep(source, batch, reached, whole=False)
            count, batch = count + len(batch), []
    await parts.keep(source, batch, _moment(until), whole=True)
    return count + len(batch)


def _reached(batch: Sequence[Trigger]) -> str:
    """Return up to which moment a listing has come, oldest first; empty when it does not say."""
    last = batch[-1].occurred_at
    return _moment(last) if last else ""


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
