"""Sessions: claim, renew, append, finish; each write checks the lease's fencing number (B8.5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

import sqlalchemy as sa

from upright.core.ids import SessionId, WorkId
from upright.core.mandate import Trust
from upright.core.transcript import Message, decode, encode
from upright.store.errors import LeaseLostError, UnknownIdError
from upright.store.tables import DELIVERY, ENTRY, SESSION
from upright.store.unit import Unit

_ONE: Final = SESSION.c.id == sa.bindparam("session")
_NOW: Final = sa.bindparam("now_ms", type_=sa.BigInteger())
_READY: Final = SESSION.c.ready_at_ms
_INBOX: Final = sa.and_(
    DELIVERY.c.session_id == sa.bindparam("session"), DELIVERY.c.taken_n.is_(None)
)

# statements of the hot path are made once: building one costs more than running it
_WAKE: Final = (
    SESSION.update()
    .where(_ONE, SESSION.c.ended_at_ms.is_(None), sa.or_(_READY.is_(None), _READY > _NOW))
    .values(ready_at_ms=_NOW)
)
_CLAIMABLE: Final = (
    sa.select(SESSION.c.id)
    .where(
        _READY <= _NOW,
        sa.or_(SESSION.c.lease_until_ms.is_(None), SESSION.c.lease_until_ms <= _NOW),
    )
    .order_by(_READY)
    .limit(sa.bindparam("most", type_=sa.Integer()))
    .with_for_update(skip_locked=True)  # SQLite has one writer, and leaves it out
)
_CLAIM: Final = (
    SESSION.update()
    .where(SESSION.c.id.in_(sa.bindparam("sessions", expanding=True)))
    .values(lease_epoch=SESSION.c.lease_epoch + 1, lease_until_ms=sa.bindparam("until_ms"))
    .returning(SESSION.c.id, SESSION.c.lease_epoch)
)
_RENEW: Final = (
    SESSION.update()
    .where(_ONE, SESSION.c.lease_epoch == sa.bindparam("epoch"))
    .values(
        lease_until_ms=sa.case(
            (SESSION.c.lease_until_ms.is_not(None), sa.bindparam("until_ms", type_=sa.BigInteger()))
        )
    )
)
_NEXT_READY: Final = sa.select(sa.func.min(_READY)).where(
    _READY.is_not(None),  # what sleeps is not in the index, and not looked at
    SESSION.c.lease_until_ms.is_(None),
)
# written out, not bound: only so is the index of the one router taken
_ROUTER: Final = sa.select(SESSION.c.id).where(SESSION.c.kind == sa.literal_column("'router'"))
_LOAD: Final = sa.select(SESSION).where(_ONE)
_ENTRIES: Final = (
    sa.select(ENTRY.c.message_json, ENTRY.c.digest, ENTRY.c.ends_turn)
    .where(
        ENTRY.c.session_id == sa.bindparam("session"),
        ENTRY.c.generation == sa.bindparam("generation"),
    )
    .order_by(ENTRY.c.n)
)
_EPOCH: Final = sa.select(SESSION.c.lease_epoch).where(_ONE)
_GIVEN: Final = ("turn_id", "message_json", "digest", "ends_turn", "taint", "at_ms")
# the fence, the next number and the generation in one statement
_ADD_ENTRY: Final = (
    ENTRY.insert()
    .from_select(
        ["session_id", "n", "generation", *_GIVEN],
        sa.select(
            SESSION.c.id,
            sa.select(sa.func.coalesce(sa.func.max(ENTRY.c.n) + 1, 0))
            .where(ENTRY.c.session_id == sa.bindparam("session"))
            .scalar_subquery(),
            SESSION.c.generation,
            *(sa.bindparam(name, type_=ENTRY.c[name].type) for name in _GIVEN),
        ).where(_ONE, SESSION.c.lease_epoch == sa.bindparam("epoch")),
        include_defaults=False,
    )
    .returning(ENTRY.c.n)
)
_INBOX_SIZE: Final = sa.select(
    sa.func.count().label("waiting"),
    sa.func.count().filter(DELIVERY.c.wake).label("waking"),
    sa.func.count().filter(DELIVERY.c.wake, sa.not_(DELIVERY.c.folded)).label("due"),
).where(_INBOX)
_FIRST_DUE: Final = (
    sa.select(DELIVERY.c.folded, SESSION.c.fold_due_ms)
    .join(SESSION, SESSION.c.id == DELIVERY.c.session_id)
    .where(_INBOX, DELIVERY.c.wake)
    .order_by(DELIVERY.c.folded)
    .limit(1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A session under a lease: commits with another epoch are refused."""

    session: SessionId
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the store knows of a tool message beside its text; see ``core.turn.View``."""

    call_id: str
    digest: str
    ends_turn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A session as a turn finds it."""

    id: SessionId
    kind: str
    work: WorkId | None
    generation: int
    prompt_tokens: int
    taint: Trust
    nudges: int
    steps: int
    failures: int
    messages: tuple[Message, ...]
    answers: tuple[Answer, ...]


def create(
    u: Unit, *, kind: str, agent: str, work: str | None, trust: Trust, private: bool = False
) -> SessionId:
    """Make a session with an empty transcript; *private*: what it begins with is."""
    made = SessionId(u.new_id("session"))
    u.c.execute(
        SESSION.insert().values(
            id=made,
            kind=kind,
            agent=agent,
            work_id=work,
            generation=0,
            taint=int(trust),
            private=private,
            lease_epoch=0,
            failures=0,
            nudges=0,
            steps=0,
            created_at_ms=u.now_ms,
        )
    )
    return made


def router(c: sa.Connection) -> SessionId | None:
    """Find the router's session."""
    found = c.scalar(_ROUTER)
    return SessionId(found) if found else None


def ensure_router(u: Unit) -> SessionId:
    """Return the router's one session, made when it is not there yet."""
    return router(u.c) or create(u, kind="router", agent="router", work=None, trust=Trust.OPERATOR)


# ------------------------------------------------------------------ the queue
def wake(u: Unit, session: str) -> None:
    """Make a live session ready now, unless it is ready earlier."""
    u.c.execute(_WAKE, {"session": session, "now_ms": u.now_ms})


def park(c: sa.Connection, session: str) -> None:
    """Take a session out of the queue: a blocked item waits for a person, whatever comes."""
    c.execute(SESSION.update().where(SESSION.c.id == session).values(ready_at_ms=None))


def claim(c: sa.Connection, now_ms: int, until_ms: int, limit: int) -> list[Claim]:
    """Lease up to *limit* ready sessions, the longest ready first; each gets a new epoch."""
    ids = list(c.scalars(_CLAIMABLE, {"now_ms": now_ms, "most": limit}))
    if not ids:
        return []
    taken = c.execute(_CLAIM, {"sessions": ids, "until_ms": until_ms}).all()
    order = {found: n for n, found in enumerate(ids)}
    claims = [Claim(session=SessionId(row.id), epoch=row.lease_epoch) for row in taken]
    return sorted(claims, key=lambda one: order[one.session])


def renew(c: sa.Connection, claims: Iterable[Claim], until_ms: int) -> list[Claim]:
    """Prolong leases; return those that are lost. What was given back meanwhile stays given back.

    Leased anew, a session at rest would not hear its next trigger until that ran out.
    """
    return [
        one
        for one in claims
        if not c.execute(
            _RENEW, {"session": one.session, "epoch": one.epoch, "until_ms": until_ms}
        ).rowcount
    ]


def next_ready_ms(c: sa.Connection) -> int | None:
    """Return when the next session that nobody has leased becomes ready."""
    return cast("int | None", c.scalar(_NEXT_READY))


def free_all(c: sa.Connection) -> int:
    """Drop every lease: at start, when the exclusive guard says that no other hub lives."""
    dropped = SESSION.update().where(SESSION.c.lease_until_ms.is_not(None))
    return c.execute(dropped.values(lease_until_ms=None)).rowcount


def check(c: sa.Connection, lease: Claim) -> None:
    """Raise LeaseLostError when somebody else leads this session now."""
    epoch = c.scalar(_EPOCH, {"session": lease.session})
    if epoch != lease.epoch:
        raise LeaseLostError(session=lease.session, epoch=lease.epoch)


def _held(c: sa.Connection, lease: Claim, values: Mapping[str, object]) -> bool:
    """Set columns of a session that is still ours; say whether it is."""
    mine = {"session": lease.session, "epoch": lease.epoch}
    given = {f"to_{name}": value for name, value in values.items()}
    return c.execute(_setting(tuple(values)), {**mine, **given}).rowcount == 1


@cache
def _setting(columns: tuple[str, ...]) -> sa.Update:
    values = {name: sa.bindparam(f"to_{name}", type_=SESSION.c[name].type) for name in columns}
    mine = sa.and_(_ONE, SESSION.c.lease_epoch == sa.bindparam("epoch"))
    return SESSION.update().where(mine).values(**values)


def update(c: sa.Connection, lease: Claim, **values: object) -> None:
    """Set columns of a leased session.

    Raises:
        LeaseLostError: the epoch is not ours any more.
    """
    if not _held(c, lease, values):
        raise LeaseLostError(session=lease.session, epoch=lease.epoch)


def finish(u: Unit, lease: Claim, *, retry_at_ms: int | None, end: bool) -> None:
    """Give the lease back. What came meanwhile, or a retry, makes the session ready again.

    What was folded alone makes it ready at the end of its window (B2.5).
    """
    ready = None if end else _next(u, lease.session) if retry_at_ms is None else retry_at_ms
    values: dict[str, object] = {"lease_until_ms": None, "ready_at_ms": ready}
    if end:
        values["ended_at_ms"] = u.now_ms
    update(u.c, lease, **values)


def _next(u: Unit, session: str) -> int | None:
    """Return when something in a session's inbox wakes it; None when nothing does."""
    first = u.c.execute(_FIRST_DUE, {"session": session}).one_or_none()
    if first is None:
        return None
    return int(first.fold_due_ms) if first.folded and first.fold_due_ms else u.now_ms


# ------------------------------------------------------------------ the transcript
def load(c: sa.Connection, session: str) -> Loaded:
    """Read a session and the messages of its present generation.

    Raises:
        UnknownIdError: there is no such session.
    """
    row = c.execute(_LOAD, {"session": session}).one_or_none()
    if row is None:
        raise UnknownIdError(session)
    entries = c.execute(_ENTRIES, {"session": session, "generation": row.generation}).all()
    messages = tuple(decode(entry.message_json) for entry in entries)
    answers = tuple(
        Answer(call_id=message.call_id, digest=entry.digest, ends_turn=entry.ends_turn)
        for message, entry in zip(messages, entries, strict=True)
        if message.call_id
    )
    return Loaded(
        id=SessionId(row.id),
        kind=row.kind,
        work=WorkId(row.work_id) if row.work_id else None,
        generation=row.generation,
        prompt_tokens=row.prompt_tokens,
        taint=Trust(row.taint),
        nudges=row.nudges,
        steps=row.steps,
        failures=row.failures,
        messages=messages,
        answers=answers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A message to be appended, in which turn; with a tool message what is known of its result.

    ``taint`` is the session's with this message.
    """

    turn: str
    message: Message
    taint: Trust = Trust.STRANGER
    digest: str = ""
    ends_turn: bool = False


def append(u: Unit, lease: Claim, line: Line) -> int:
    """Append one message under the lease; return its number.

    Raises:
        LeaseLostError: the epoch is not ours any more.
    """
    entry = {
        "session": lease.session,
        "epoch": lease.epoch,
        "turn_id": line.turn,
        "message_json": encode(line.message),
        "digest": line.digest,
        "ends_turn": line.ends_turn,
        "taint": int(line.taint),
        "at_ms": u.now_ms,
    }
    number: int | None = u.c.scalar(_ADD_ENTRY, entry)
    if number is None:
        raise LeaseLostError(session=lease.session, epoch=lease.epoch)
    return number


# ------------------------------------------------------------------ what waits
@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """How much waits to be taken: all of it, what wakes, and what is due now (B2.5)."""

    waiting: int
    waking: int
    due: int


def inbox(c: sa.Connection, session: str) -> Inbox:
    """Count what waits to be taken."""
    row = c.execute(_INBOX_SIZE, {"session": session}).one()
    return Inbox(waiting=row.waiting, waking=row.waking, due=row.due)


def live(c: sa.Connection, sessions: Collection[str]) -> set[str]:
    """Return those of *sessions* that have not ended."""
    alive = sa.select(SESSION.c.id).where(
        SESSION.c.id.in_(sessions), SESSION.c.ended_at_ms.is_(None)
    )
    return set(c.scalars(alive))
