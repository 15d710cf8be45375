"""Requests as they are shown: what exactly is asked, its cause, what tainted it, what may be done.

One shape for the API, the command line and the pages; see :func:`requests`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import sqlalchemy as sa

from upright.core.request import RequestKind, RequestState
from upright.store import codec
from upright.store.plain import Plain, listed, plain
from upright.store.tables import EFFECT_EDIT, OUTBOX, REQUEST, TRIGGER, WORK
from upright.store.unit import Connection

EFFECT: Final = "effect"
_ANSWERED_BY_WORD: Final = frozenset({RequestKind.QUESTION.value})
_EDITABLE: Final = frozenset({RequestKind.APPROVAL.value})


def requests(c: Connection, *, open_only: bool = True) -> list[Plain]:
    """List what people are asked, the oldest first.

    Beside its columns each has ``goal`` of its item, ``effect`` (what exactly would be sent, where,
    its digest, how people have edited it; None where nothing is), ``cause`` and ``tainted_by``
    (triggers with ``id``, ``kind``, ``actor_kind``, ``by`` and ``title``; other things with ``id``
    alone), ``trust`` of the least trusted that was read, ``no_route`` (why nobody would hear of
    it; empty else), ``asked_again`` (the request that asks once more) and ``can``, the words that
    a person may use on it now.
    """
    chosen = sa.select(REQUEST, WORK.c.goal).outerjoin(WORK, WORK.c.id == REQUEST.c.work_id)
    if open_only:
        chosen = chosen.where(REQUEST.c.state == RequestState.ASKED.value)
    rows = listed(c, chosen.order_by(REQUEST.c.created_at_ms, REQUEST.c.id))
    return _whole(c, rows)


def request(c: Connection, wanted: str) -> Plain:
    """Return one request as :func:`requests` lists it; its id is there."""
    chosen = sa.select(REQUEST, WORK.c.goal).outerjoin(WORK, WORK.c.id == REQUEST.c.work_id)
    return _whole(c, listed(c, chosen.where(REQUEST.c.id == wanted)))[0]


def _whole(c: Connection, rows: Sequence[Plain]) -> list[Plain]:
    effects = _effects(c, [row["outbox_id"] for row in rows if row["outbox_id"]])
    again = _again(c, [row["id"] for row in rows if row["state"] == RequestState.EXPIRED.value])
    named = {one for row in rows for one in (*row["cause"], *row["taint"])}
    known = _triggers(c, named)
    whole = []
    for row in rows:
        tainted_by = row.pop("taint")
        asked_again = again.get(row["id"])
        more = {
            EFFECT: effects.get(row["outbox_id"] or ""),
            "cause": [known.get(one, {"id": one}) for one in row["cause"]],
            "tainted_by": [known.get(one, {"id": one}) for one in tainted_by],
            "asked_again": asked_again,
            "can": _can(row, asked_again),
        }
        whole.append({**row, **more})
    return whole


def _can(row: Plain, asked_again: str | None) -> list[str]:
    """Say which words a person may use now: approve, deny, edit, answer, ask-again."""
    kind, state = row["kind"], RequestState(row["state"])
    if state is RequestState.EXPIRED and kind == RequestKind.APPROVAL and not asked_again:
        return ["ask-again"]
    if state is not RequestState.ASKED:
        return []
    if kind in _ANSWERED_BY_WORD:
        return ["answer"]
    return ["approve", "edit", "deny"] if kind in _EDITABLE else ["approve", "deny"]


def _effects(c: Connection, ids: Sequence[str]) -> dict[str, Plain]:
    rows = c.execute(sa.select(OUTBOX).where(OUTBOX.c.id.in_(ids))).all()
    edits: dict[str, list[Plain]] = {}
    changed = sa.select(EFFECT_EDIT).where(EFFECT_EDIT.c.outbox_id.in_(ids))
    for row in c.execute(changed.order_by(EFFECT_EDIT.c.n)).mappings():
        edits.setdefault(row["outbox_id"], []).append(plain(row))
    return {
        row.id: {
            "id": row.id,
            "class": row.effect_class,
            "destination": plain({"it_json": row.destination_json})["it"],
            "text": row.text,
            "digest": row.digest,
            "state": row.state,
            "edits": edits.get(row.id, []),
        }
        for row in rows
    }


def _again(c: Connection, ids: Sequence[str]) -> dict[str, str]:
    later = sa.select(REQUEST.c.again_of, REQUEST.c.id).where(REQUEST.c.again_of.in_(ids))
    return {row.again_of: row.id for row in c.execute(later)}


def _triggers(c: Connection, ids: set[str]) -> Mapping[str, Plain]:
    rows = c.execute(
        sa.select(
            TRIGGER.c.id,
            TRIGGER.c.kind,
            TRIGGER.c.source,
            TRIGGER.c.actor_kind,
            TRIGGER.c.actor_id,
            TRIGGER.c.trust,
            TRIGGER.c.body_json,
        ).where(TRIGGER.c.id.in_(sorted(ids)))
    ).mappings()
    return {row["id"]: _trigger(row) for row in rows}


def _trigger(row: sa.RowMapping) -> Plain:
    told = codec.load_trigger(row["body_json"])
    return {
        "id": row["id"],
        "kind": row["kind"],
        "source": row["source"],
        "actor_kind": row["actor_kind"],
        "by": told.actor.name or row["actor_id"],
        "title": told.content.title[:200],
        **plain({"trust": row["trust"]}),
    }
