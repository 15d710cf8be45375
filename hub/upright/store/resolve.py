"""Resolve: the one id that a prefix means, over all tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

import sqlalchemy as sa

from upright.core.ids import PREFIXES
from upright.store import tables
from upright.store.errors import AmbiguousIdError, UnknownIdError
from upright.store.plain import Plain, columns, listed, one
from upright.store.privacy import NOTHING

_TABLES: Final[Mapping[str, sa.Table]] = {
    "trigger": tables.TRIGGER,
    "thread": tables.THREAD,
    "session": tables.SESSION,
    "work": tables.WORK,
    "wait": tables.WAIT,
    "job": tables.JOB,
    "outbox": tables.OUTBOX,
    "request": tables.REQUEST,
    "device": tables.DEVICE,
    "turn": tables.TURN,
    "watch": tables.WATCH,
    "memory": tables.MEMORY,
    "payload": tables.PAYLOAD,
}
MAX_CANDIDATES: Final = 5
_PAGE: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """An id, and the kind of thing it is (a key of ``core.ids.PREFIXES``)."""

    kind: str
    id: str


def resolve(c: sa.Connection, prefix: str, hidden: frozenset[str] = NOTHING) -> Resolved:
    """Find what *prefix* means: a whole id, or the beginning of one and only one.

    Of what is *hidden* from who asks nothing is found, and nothing is made ambiguous by it.

    Raises:
        UnknownIdError: nothing begins like this.
        AmbiguousIdError: several do; it names up to five.
    """
    found = [
        Resolved(kind=kind, id=each)
        for kind, table in _TABLES.items()
        if prefix and _may_begin(prefix, f"{PREFIXES[kind]}_")
        for each in islice(_begins(c, table, prefix, hidden), MAX_CANDIDATES)
    ]
    exact = [each for each in found if each.id == prefix]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        raise UnknownIdError(prefix)
    raise AmbiguousIdError(prefix, tuple(each.id for each in found[:MAX_CANDIDATES]))


def row(c: sa.Connection, found: Resolved) -> Plain:
    """Return the row itself, for what has no view of its own; a payload without its body.

    Raises:
        UnknownIdError: it is gone meanwhile.
    """
    if found.kind != "payload":
        return one(c, _TABLES[found.kind], found.id)
    table = tables.PAYLOAD
    shown = listed(c, sa.select(*columns(table, without=["body"])).where(table.c.id == found.id))
    if not shown:
        raise UnknownIdError(found.id)
    return shown[0]


def _may_begin(prefix: str, start: str) -> bool:
    return prefix.startswith(start) or start.startswith(prefix)


def _begins(
    c: sa.Connection, table: sa.Table, prefix: str, hidden: frozenset[str]
) -> Iterator[str]:
    """Read ids by range, which the key's index serves; LIKE would read the whole table."""
    after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    key = table.c.id
    chosen = sa.select(key).where(key >= prefix, key < after).order_by(key).limit(_PAGE)
    page = list(c.scalars(chosen))
    while page:
        yield from (each for each in page if each not in hidden)
        page = list(c.scalars(chosen.where(key > page[-1]))) if len(page) == _PAGE else []
