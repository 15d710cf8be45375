"""Graph: what is related to what; each link is written down once and read from both ends (B7.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

import sqlalchemy as sa

from upright.core.ids import kind_of
from upright.core.recall import Edge, edges
from upright.store import codec
from upright.store.relations import RelationKind
from upright.store.tables import (
    DELIVERY,
    JOB,
    MEMORY,
    OUTBOX,
    RELATION,
    REQUEST,
    SUBSCRIPTION,
    THREAD_LINK,
    TRIGGER,
    WAIT,
    WORK,
)

MOST: Final = 20
"""So many relatives of one sort are named, the newest; a thread's text lists all its triggers."""
_NEAR: Final = sa.bindparam("near", type_=sa.String())


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Rows that relate two things: each end is (its kind, its column, what the other is to it)."""

    one: tuple[str, sa.Column[str], str]
    other: tuple[str, sa.Column[str], str]
    where: sa.ColumnElement[bool] | None = None


def _link(
    one: str, column: sa.Column[str], to: str, /, *, back: str, other: sa.Column[str]
) -> Link:
    """Say that *one*'s row at *column* names its *to*; ``to`` is ``kind`` or ``kind: what``."""
    kind, _, what = to.partition(": ")
    return Link(one=(one, column, what or kind), other=(kind, other, back))


def _related(kind: RelationKind, back: str) -> Link:
    c = RELATION.c
    return Link(
        one=("work", c.work_id, kind.value),
        other=("work", c.other_id, back),
        where=c.kind == kind.value,
    )


LINKS: Final = (
    _link("trigger", TRIGGER.c.id, "thread", back="triggers", other=TRIGGER.c.thread_id),
    _link("trigger", TRIGGER.c.id, "trigger: edits", back="edited_by", other=TRIGGER.c.edits_id),
    _link(
        "trigger",
        DELIVERY.c.trigger_id,
        "session: given_to",
        back="was_given",
        other=DELIVERY.c.session_id,
    ),
    _link(
        "thread", THREAD_LINK.c.thread_id, "thread: linked", back="", other=THREAD_LINK.c.other_id
    ),  # stored both ways round already
    _link(
        "session",
        SUBSCRIPTION.c.session_id,
        "thread: follows",
        back="followers",
        other=SUBSCRIPTION.c.thread_id,
    ),
    _link("work", WORK.c.id, "session", back="work", other=WORK.c.session_id),
    _link("work", WORK.c.id, "trigger: opened_by", back="opened", other=WORK.c.trigger_id),
    _link("work", WORK.c.id, "thread", back="work", other=WORK.c.thread_id),
    _related(RelationKind.CHILD_OF, "children"),
    _related(RelationKind.FOLLOWS, "followed_by"),
    _related(RelationKind.DUPLICATES, "duplicated_by"),
    _related(RelationKind.BLOCKS, "blocked_by"),
    _link("wait", WAIT.c.id, "work", back="waits", other=WAIT.c.work_id),
    _link("job", JOB.c.id, "work", back="jobs", other=JOB.c.work_id),
    _link("job", JOB.c.id, "session", back="jobs", other=JOB.c.session_id),
    _link("outbox", OUTBOX.c.id, "work", back="effects", other=OUTBOX.c.work_id),
    _link("outbox", OUTBOX.c.id, "session", back="effects", other=OUTBOX.c.session_id),
    _link("outbox", OUTBOX.c.id, "trigger: answers", back="answered_by", other=OUTBOX.c.trigger_id),
    _link("request", REQUEST.c.id, "work", back="questions", other=REQUEST.c.work_id),
    _link("request", REQUEST.c.id, "session", back="questions", other=REQUEST.c.session_id),
    _link("request", REQUEST.c.id, "outbox: about", back="questions", other=REQUEST.c.outbox_id),
    _link("memory", MEMORY.c.id, "session: written_in", back="wrote", other=MEMORY.c.session_id),
    _link(
        "memory",
        MEMORY.c.id,
        "memory: superseded_by",
        back="supersedes",
        other=MEMORY.c.superseded_by,
    ),
)


def relatives(c: sa.Connection, kind: str, wanted: str) -> tuple[Edge, ...]:
    """Return the edges of one thing, in the order of ``LINKS``; of one sort the newest, by id."""
    found = [edge for what, query in _queries(kind) for edge in _read(c, what, query, wanted)]
    return (*found, *_memories(c, kind, wanted))


def _read(c: sa.Connection, what: str, query: sa.Select[str], wanted: str) -> tuple[Edge, ...]:
    return edges(what, sorted(filter(None, c.scalars(query, {"near": wanted}))))


@cache
def _queries(kind: str) -> tuple[tuple[str, sa.Select[str]], ...]:
    return tuple(_made(kind))


def _made(kind: str) -> Iterator[tuple[str, sa.Select[str]]]:
    ends = [pair for link in LINKS for pair in ((link, link.one), (link, link.other))]
    for link, end in ends:
        near, here, what = end
        if near == kind and what:
            there = (link.other if end is link.one else link.one)[1]
            chosen = sa.select(there).where(here == _NEAR).distinct()
            if link.where is not None:
                chosen = chosen.where(link.where)
            yield what, chosen.order_by(there.desc()).limit(MOST)


# ------------------------------------------------------------------ memory names its sources
def _memories(c: sa.Connection, kind: str, wanted: str) -> tuple[Edge, ...]:
    """Return what an entry was made from, and which entries were made from a thing."""
    if kind == "memory":
        text = c.scalar(sa.select(MEMORY.c.sources_json).where(MEMORY.c.id == wanted))
        return edges("sources", codec.STRINGS.load(text) if text else ())
    if kind_of(wanted) not in {"trigger", "work"}:
        return ()
    named = MEMORY.c.sources_json.contains(f'"{wanted}"')
    newest = sa.select(MEMORY.c.id).where(named).order_by(MEMORY.c.id.desc()).limit(MOST)
    return edges("remembered_as", sorted(c.scalars(newest)))
