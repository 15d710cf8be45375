"""Alarm: what the running hub does about work that sleeps for ever (B11.8): mend, say, ask."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.core.ids import SessionId
from upright.core.outbox import OutboxState
from upright.store import oracle, requests, sessions, work
from upright.store.events import About, record
from upright.store.oracle import Stalled
from upright.store.tables import OUTBOX, SESSION
from upright.store.unit import Unit

PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look found: ``mended`` sessions are in the queue again; ``last`` as in a page."""

    stalled: tuple[Stalled, ...]
    mended: tuple[SessionId, ...]
    last: str


def peek(c: sa.Connection, after: str) -> Look:
    """Look without mending; ``mended`` is who would be."""
    page = oracle.page(c, after, PAGE)
    deaf = tuple(SessionId(one.id) for one in oracle.unheard(c))
    return Look(stalled=page.found, mended=deaf, last=page.last)


def look(u: Unit, after: str, seen: Collection[str]) -> Look:
    """Look at every unheard session and one page of items; *seen* were stalled the last time.

    A session with something to read is put into the queue, which is always safe. What else is
    stalled leaves an event when it is first seen; the second time a person is asked.
    """
    mended = []
    for one in oracle.unheard(u.c):
        sessions.wake(u, one.id)
        record(u, "oracle.mended", About(session_id=one.id), {"was": one.missing})
        mended.append(SessionId(one.id))
    page = oracle.page(u.c, after, PAGE)
    for one in page.found:
        if one.id in seen:
            _ask(u, one)
        else:
            said = {"state": one.state, "missing": one.missing}
            record(u, "oracle.stalled", About(work_id=one.id), said)
    return Look(stalled=page.found, mended=tuple(mended), last=page.last)


def _ask(u: Unit, one: Stalled) -> None:
    item = work.read(u.c, one.id)
    prompt = (
        f"{one.id} is {one.state}, and nothing will wake it: {one.missing}. This is a fault of "
        f"the hub. `upright session say {item.session} TEXT` wakes it; "
        f"`upright work cancel {one.id}` ends it."
    )
    requests.ask(u, requests.Asking(prompt=prompt, work=item.id, session=item.session))


# ------------------------------------------------------------------ the clock went back
def pull(u: Unit) -> int:
    """Make due now what is queued for a time to come: the wall clock has gone back under it.

    Waits keep their deadlines, which are dates: they fire late rather than never.
    """
    ahead = sa.and_(SESSION.c.ready_at_ms.is_not(None), SESSION.c.ready_at_ms > u.now_ms)
    pulled = u.c.execute(SESSION.update().where(ahead).values(ready_at_ms=u.now_ms)).rowcount
    later = sa.and_(OUTBOX.c.state == OutboxState.PENDING.value, OUTBOX.c.due_at_ms > u.now_ms)
    pulled += u.c.execute(OUTBOX.update().where(later).values(due_at_ms=u.now_ms)).rowcount
    record(u, "oracle.clock_went_back", About(), {"pulled": pulled})
    return pulled
