"""Holds: work that no model call is made for, until a person or a new day lets it go on (B16)."""

from __future__ import annotations

import json
from typing import Final

import sqlalchemy as sa

from upright.core.request import RequestState
from upright.core.wait import WaitKind, Wake
from upright.store import sessions, waits
from upright.store.tables import REQUEST, WORK
from upright.store.unit import Unit

SUBJECT: Final = "held"
"""The key of a request's subject that names what is held."""
MODEL: Final = "model"
"""What an item waits for while no model call may be made, or none works."""


def release(u: Unit, ref: str) -> list[str]:
    """Withdraw the question about *ref*, and let everybody try again who waits for the model.

    Who is still held by something else finds that at once, and waits on: a try costs no call.
    Returns the sessions that are woken.
    """
    subject = json.dumps({SUBJECT: ref})
    mine = sa.and_(REQUEST.c.state == RequestState.ASKED.value, REQUEST.c.subject_json == subject)
    u.c.execute(REQUEST.update().where(mine).values(state=RequestState.WITHDRAWN.value))
    woken = []
    for item in waits.works_waiting(u.c, WaitKind.SYSTEM, MODEL):
        waits.settle(u.c, item, Wake(kind=WaitKind.SYSTEM, ref=MODEL))
        woken.append(str(u.c.scalar(sa.select(WORK.c.session_id).where(WORK.c.id == item))))
    router = sessions.router(u.c)
    if router is not None:
        woken.append(router)
    for session in woken:
        sessions.wake(u, session)
    return woken
