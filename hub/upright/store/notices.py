"""Notices: each operator who wants it is told in chat what waits for them, once (B14.4).

A notice is a row of the outbox that no session has written: nothing is held for it, nobody is
woken by how it ends, and who is told is fixed by the configuration alone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from upright.api import EffectClass
from upright.core.notice import Asked as Told
from upright.core.notice import notice
from upright.core.outbox import OutboxState
from upright.core.request import RequestKind, RequestState
from upright.core.terms import Terms
from upright.store import approvers, outbox, requests
from upright.store.requests import Asked
from upright.store.tables import OUTBOX, REQUEST, WORK
from upright.store.unit import Connection, Unit

KEY: Final = approvers.NOTICE
KINDS: Final = (RequestKind.APPROVAL, RequestKind.QUESTION, RequestKind.ACCEPTANCE)
_BATCH: Final = 50
_KINDS: Final = REQUEST.c.kind.in_([kind.value for kind in KINDS])
_ASKED: Final = REQUEST.c.state == RequestState.ASKED.value
_UNSENT: Final = sa.select(OUTBOX.c.id, OUTBOX.c.idempotency_key).where(
    OUTBOX.c.state == OutboxState.PENDING.value,
    OUTBOX.c.idempotency_key.startswith(KEY, autoescape=True),
)


def untold(c: Connection, who: str, now_ms: int) -> list[str]:
    """Return the requests that an operator may answer and was not told of, the oldest first."""
    if not approvers.may_answer(c, who):
        return []
    key = sa.literal(KEY) + REQUEST.c.id + sa.literal(f":{who}")
    was_told = sa.exists().where(OUTBOX.c.idempotency_key == key)
    private_to = sa.func.coalesce(WORK.c.private_to, "")
    query = (
        sa.select(REQUEST.c.id)
        .outerjoin(WORK, WORK.c.id == REQUEST.c.work_id)
        .where(_ASKED, _KINDS, REQUEST.c.expires_at_ms > now_ms, private_to.in_(("", who)))
        .where(sa.not_(was_told))
    )
    return [*c.scalars(query.order_by(REQUEST.c.created_at_ms, REQUEST.c.id).limit(_BATCH))]


def stale(c: Connection) -> list[str]:
    """Return the notices that nobody has sent yet and that are about something settled."""
    waiting = c.execute(_UNSENT).all()
    about = {row.id: row.idempotency_key.removeprefix(KEY).partition(":")[0] for row in waiting}
    named = sa.select(REQUEST.c.id).where(_ASKED, REQUEST.c.id.in_(set(about.values())))
    still = set(c.scalars(named)) if about else set()
    return [notice for notice, request in about.items() if request not in still]


def is_due(c: Connection, terms: Terms, now_ms: int) -> bool:
    """Say whether :func:`tell` has something to do."""
    if any(untold(c, who, now_ms) for who in terms.notify):
        return True
    return bool(stale(c)) or bool(approvers.changed(c, terms))


def tell(u: Unit) -> int:
    """Put a notice for each request and each operator who is to be told; return how many.

    What was settled before its notice left is not told any more.
    """
    for one in stale(u.c):
        outbox.discard(u, one, "what it tells of is settled")
    made = 0
    for who, place in u.terms.notify.items():
        for request in untold(u.c, who, u.now_ms):
            asked = requests.read(u.c, request)
            draft = outbox.Draft(
                session="",
                work=asked.work,
                trigger=None,
                effect_class=EffectClass.REPLY,
                destination=place,
                text=notice(_told(u.c, asked)),
                idempotency_key=f"{KEY}{request}:{who}",
                life_ms=asked.expires_at_ms - u.now_ms,
            )
            outbox.put(u, draft)
            made += 1
    approvers.refresh(u)
    return made


def _told(c: Connection, asked: Asked) -> Told:
    effect = outbox.read(c, asked.outbox) if asked.outbox else None
    until = datetime.fromtimestamp(asked.expires_at_ms / 1000, UTC)
    private_to = sa.select(WORK.c.private_to).where(WORK.c.id == asked.work)
    return Told(
        request=asked.id,
        kind=asked.kind,
        item=asked.work or "",
        until=f"{until:%Y-%m-%d %H:%M} UTC",
        text=effect.text if effect else asked.prompt,
        digest=asked.digest,
        to=effect.destination if effect else None,
        trust=asked.trust,
        is_private=bool(c.scalar(private_to)),
    )
