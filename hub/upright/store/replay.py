"""Replay: what today's rules would say of stored triggers; and a held one, offered once more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.core.gate import judge
from upright.core.ids import SessionId
from upright.core.trigger import Disposition, origin
from upright.store import codec, sessions
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.events import About, record
from upright.store.intake import HUB_SOURCE, Policy
from upright.store.tables import DELIVERY, TRIGGER
from upright.store.unit import Unit

_SHOWN: Final = (
    TRIGGER.c.id,
    TRIGGER.c.seq,
    TRIGGER.c.source,
    TRIGGER.c.kind,
    TRIGGER.c.body_json,
    TRIGGER.c.received_at_ms,
    TRIGGER.c.verdict,
    TRIGGER.c.rule,
    TRIGGER.c.rules_version,
    TRIGGER.c.disposition,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A stored trigger: the verdict that it got, by which rule, and what it would get now."""

    id: str
    seq: int
    kind: str
    title: str
    received_at_ms: int
    disposition: str
    verdict: str
    rule: str
    version: str
    now_verdict: str
    now_rule: str
    now_version: str
    changes: bool


def replay(
    c: sa.Connection, policy: Policy, *, trigger: str = "", since_ms: int = 0, limit: int
) -> list[Replayed]:
    """Judge stored triggers anew, newest first; nothing is stored, nobody is woken.

    One *trigger*, or those that came from *since_ms* on. What the hub itself said is left out:
    no rule judges it. A trigger's actor is as it was taken in, with what is known of him now.
    """
    wanted = sa.select(*_SHOWN).where(TRIGGER.c.source != HUB_SOURCE)
    if trigger:
        wanted = wanted.where(TRIGGER.c.id == trigger)
    newest = wanted.order_by(TRIGGER.c.seq.desc()).limit(limit)
    return list(_judged(c, policy, newest, since_ms))


def _judged(
    c: sa.Connection, policy: Policy, newest: sa.Select[tuple[object, ...]], since_ms: int
) -> Iterator[Replayed]:
    for row in c.execute(newest):
        if row.received_at_ms < since_ms:
            return
        trigger = codec.load_trigger(row.body_json)
        who = origin(trigger, row.source, policy.people)
        now = judge(policy.rules, row.source, trigger, who)
        yield Replayed(
            id=row.id,
            seq=row.seq,
            kind=row.kind,
            title=trigger.content.title,
            received_at_ms=row.received_at_ms,
            disposition=row.disposition,
            verdict=row.verdict,
            rule=row.rule,
            version=row.rules_version,
            now_verdict=now.verdict.value,
            now_rule=now.rule,
            now_version=now.version,
            changes=row.verdict != now.verdict.value,
        )


def again(u: Unit, policy: Policy, trigger: str) -> SessionId:
    """Offer a held trigger to the router, as if it had been asked for; return whom that wakes.

    Raises:
        UnknownIdError: there is no such trigger.
        NotNowError: it is not held, or no model is configured and nobody would read it.
    """
    held = TRIGGER.c.disposition == Disposition.HELD.value
    row = u.c.execute(
        sa.select(TRIGGER.c.disposition, TRIGGER.c.reason).where(TRIGGER.c.id == trigger)
    ).one_or_none()
    if row is None:
        raise UnknownIdError(trigger)
    if row.disposition != Disposition.HELD.value:
        raise NotNowError(trigger, f"it is {row.disposition}; only what is held is offered again")
    if not policy.routes:
        raise NotNowError(trigger, "no model is configured, so nobody would read it")
    router = sessions.ensure_router(u)
    reason = f"offered again by the operator; before: {row.reason}"
    moved = TRIGGER.update().where(TRIGGER.c.id == trigger, held)
    u.c.execute(moved.values(disposition=Disposition.WOKE.value, reason=reason))
    delivery = {"session_id": router, "trigger_id": trigger, "wake": True, "strategy": "queue"}
    u.c.execute(DELIVERY.insert(), delivery)
    record(u, "trigger.again", About(trigger_id=trigger, session_id=router))
    sessions.wake(u, router)
    return router
