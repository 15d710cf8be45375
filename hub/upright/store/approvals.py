"""Approvals: one exact effect, as it was shown or as the person has changed it (B14.3)."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from upright.core.ids import RequestId
from upright.core.outbox import OutboxState
from upright.core.request import RequestKind, RequestState
from upright.core.work import TERMINAL
from upright.store import answers, outbox, requests, work
from upright.store.errors import NotNowError
from upright.store.events import About, record
from upright.store.outbox import Draft, Stored
from upright.store.requests import Asked, Asking
from upright.store.tables import EFFECT_EDIT, OUTBOX, REQUEST
from upright.store.unit import Unit

MOST_CHARS: Final = 60_000


def shown(u: Unit, asked: Asked) -> Stored:
    """Return the effect that a request asks about, exactly as it was shown.

    Raises:
        NotNowError: it asks for no approval, or the effect is not the one that was shown.
    """
    if asked.kind is not RequestKind.APPROVAL or asked.outbox is None:
        raise NotNowError(asked.id, "this asks for no approval")
    stored = outbox.read(u.c, asked.outbox)
    if outbox.digest(stored.destination, stored.text) != asked.digest:
        raise NotNowError(asked.id, "the effect is not what was shown; it needs a new approval")
    return stored


def edit(u: Unit, asked: Asked, text: str, by: str) -> str:
    """Change the text of a held effect that is to be approved so; the old one is kept beside it.

    The request names the new digest from now on, which is returned: a person sees, and approves,
    exactly this.

    Raises:
        NotNowError: it can't be approved, or there is no such text to send.
    """
    stored = shown(u, asked)
    if not text.strip() or len(text) > MOST_CHARS:
        raise NotNowError(asked.id, f"a text has 1 to {MOST_CHARS} characters")
    if stored.item.state is not OutboxState.HELD:
        raise NotNowError(asked.id, f"{stored.id} is {stored.item.state.value}, not held")
    digest = outbox.digest(stored.destination, text)
    count = sa.select(sa.func.count()).where(EFFECT_EDIT.c.outbox_id == stored.id)
    u.c.execute(
        EFFECT_EDIT.insert().values(
            outbox_id=stored.id,
            n=1 + (u.c.scalar(count) or 0),
            by=by,
            at_ms=u.now_ms,
            was_text=stored.text,
            was_digest=stored.digest,
            digest=digest,
        )
    )
    mine = OUTBOX.update().where(OUTBOX.c.id == stored.id)
    u.c.execute(mine.values(text=text, digest=digest))
    u.c.execute(REQUEST.update().where(REQUEST.c.id == asked.id).values(digest=digest))
    about = About(session_id=stored.session, work_id=stored.work, outbox_id=stored.id)
    record(u, "effect.edited", about, {"by": by, "was": stored.digest, "digest": digest})
    return digest


def ask_again(u: Unit, request: str, by: str) -> RequestId:
    """Ask once more for what nobody approved in time: the same effect, held anew.

    What expired stays a no. Asking twice gives the same request.

    Raises:
        UnknownIdError: there is no such request.
        NotNowError: it has not expired, or the effect is not wanted any more.
    """
    asked = requests.read(u.c, request)
    earlier = u.c.scalar(sa.select(REQUEST.c.id).where(REQUEST.c.again_of == asked.id))
    if earlier is not None:
        return RequestId(earlier)
    if asked.state is not RequestState.EXPIRED:
        raise NotNowError(request, f"it is {asked.state.value}; what has expired is asked again")
    stored = shown(u, asked)
    _still_wanted(u, asked, stored)
    held = outbox.put(u, _anew(asked, stored))
    again = Asking(
        prompt=asked.prompt,
        work=asked.work,
        session=asked.session,
        kind=asked.kind,
        outbox=held.id,
        digest=held.digest,
        subject_json=asked.subject_json,
        again=asked,
    )
    made = requests.ask(u, again)
    about = About(session_id=asked.session, work_id=asked.work, outbox_id=held.id)
    record(u, "approval.asked_again", about, {"request": made, "of": asked.id, "by": by})
    return made


def _still_wanted(u: Unit, asked: Asked, stored: Stored) -> None:
    """Refuse what is over, or was said in another way meanwhile."""
    if asked.work is not None and work.read(u.c, asked.work).state in TERMINAL:
        raise NotNowError(asked.id, f"{asked.work} is over")
    if stored.trigger is None or stored.idempotency_key.endswith(answers.PROGRESS):
        return
    works = stored.work is not None
    meanwhile = answers.answered(u.c, stored.trigger, stored.session, works=works)
    if meanwhile is not None:
        raise NotNowError(asked.id, f"{stored.trigger} was answered by {meanwhile.effect}")


def _anew(asked: Asked, stored: Stored) -> Draft:
    key = stored.idempotency_key
    progress = answers.PROGRESS if key.endswith(answers.PROGRESS) else ""
    return Draft(
        session=stored.session,
        work=stored.work,
        trigger=stored.trigger,
        effect_class=stored.effect_class,
        destination=stored.destination,
        text=stored.text,
        idempotency_key=f"{key.removesuffix(progress)}:{asked.id}{progress}",
        state=OutboxState.HELD,
    )
