"""Inbox as it is shown: a row a trigger, newest first, with what became of it and its cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.core.trigger import Disposition
from upright.store import costs, privacy
from upright.store.columns import InJson
from upright.store.plain import Plain, listed
from upright.store.tables import DELIVERY, ENTRY, LEDGER, THREAD, TRIGGER, WORK

SEARCHED: Final = 20_000
"""A text is looked for in so many triggers at most: a look costs the same on an old hub."""

_SAID: Final = ("content.title", "content.text", "actor.name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which triggers: all for which everything holds that is said.

    ``text`` is found in what was said, by whom, the reason, or the thread's title, whatever its
    case; it is looked for in the newest ``SEARCHED`` below ``before_seq``. ``seen_by`` names a
    person: what is private to somebody else is not among them; empty: everything is.
    """

    limit: int
    before_seq: int | None = None
    disposition: Disposition | None = None
    source: str = ""
    text: str = ""
    seen_by: str = ""


def inbox(c: sa.Connection, wanted: Wanted) -> list[Plain]:
    """List triggers, the newest first; page on with the last one's ``seq`` as *before_seq*.

    Beside its own columns each has ``title``, ``thread_title``, ``actor_name``, ``deliveries`` (how
    many), ``work_id``, the item that it opened, and ``costs``, those of the turns that took it.
    """
    delivered = sa.select(sa.func.count()).where(DELIVERY.c.trigger_id == TRIGGER.c.id)
    chosen = (
        sa.select(
            TRIGGER,
            THREAD.c.title.label("thread_title"),
            WORK.c.id.label("work_id"),
            WORK.c.state.label("work_state"),
            delivered.scalar_subquery().label("deliveries"),
        )
        .outerjoin(THREAD, THREAD.c.id == TRIGGER.c.thread_id)
        .outerjoin(WORK, WORK.c.trigger_id == TRIGGER.c.id)
        .where(*_where(c, wanted))
        .order_by(TRIGGER.c.seq.desc())
        .limit(wanted.limit)
    )
    rows = [_titled(row) for row in listed(c, chosen)]
    spent = _spent(c, [row["id"] for row in rows])
    nothing = costs.total(c, sa.false())
    return [{**row, "costs": spent.get(row["id"], nothing)} for row in rows]


def sources(c: sa.Connection) -> list[str]:
    """Name every source that a trigger came from."""
    return list(c.scalars(sa.select(TRIGGER.c.source).distinct().order_by(TRIGGER.c.source)))


def _where(c: sa.Connection, wanted: Wanted) -> list[sa.ColumnElement[bool]]:
    where: list[sa.ColumnElement[bool]] = []
    if wanted.before_seq is not None:
        where.append(TRIGGER.c.seq < wanted.before_seq)
    if wanted.disposition is not None:
        where.append(TRIGGER.c.disposition == wanted.disposition.value)
    if wanted.seen_by:
        where.append(TRIGGER.c.id.not_in(privacy.triggers_of_others(wanted.seen_by)))
    if wanted.source:
        where.append(TRIGGER.c.source == wanted.source)
    if wanted.text:
        newest = wanted.before_seq or (c.scalar(sa.select(sa.func.max(TRIGGER.c.seq))) or 0) + 1
        said = [InJson(TRIGGER.c.body_json, place) for place in _SAID]
        places = (*said, TRIGGER.c.reason, THREAD.c.title)
        found = [place.icontains(wanted.text, autoescape=True) for place in places]
        where += [TRIGGER.c.seq >= newest - SEARCHED, sa.or_(*found)]
    return where


def _titled(row: Plain) -> Plain:
    body = row.pop("body")
    name = body["actor"].get("name") or body["actor"]["id"]
    return {**row, "title": body["content"]["title"], "actor_name": name}


def _spent(c: sa.Connection, triggers: Collection[str]) -> dict[str, Plain]:
    """Add up what the turns cost that took each trigger; each that a turn took has all of it."""
    taken = (
        sa.select(DELIVERY.c.trigger_id, ENTRY.c.turn_id)
        .join(
            ENTRY,
            sa.and_(ENTRY.c.session_id == DELIVERY.c.session_id, ENTRY.c.n == DELIVERY.c.taken_n),
        )
        .where(DELIVERY.c.trigger_id.in_(triggers), ENTRY.c.turn_id != "")
        .distinct()
        .subquery()
    )
    summed = sa.select(taken.c.trigger_id, *costs.SUMS).join(
        LEDGER, LEDGER.c.turn_id == taken.c.turn_id
    )
    rows = listed(c, summed.group_by(taken.c.trigger_id))
    return {row.pop("trigger_id"): row for row in rows}
