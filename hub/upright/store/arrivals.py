"""Arrivals: what several sources brought, looked up and placed together, by a few statements.

One batch costs as many look-ups as one trigger: the keys, the receipts and the threads of all are
asked for at once. Its triggers keep their order, and a later one sees what an earlier one taught.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import sqlalchemy as sa

from upright.api import ActorKind, Trigger
from upright.core.gate import Judgement, Rules, judge
from upright.core.ids import ThreadId, TriggerId
from upright.core.routing import Route
from upright.core.trigger import Disposition, Origin, People, StoredTrigger, origin
from upright.store import codec, receipts, sources, spill, threads
from upright.store.runs import Runs
from upright.store.tables import DEDUPE, PAYLOAD, TRIGGER
from upright.store.threads import Places
from upright.store.unit import Unit

NATIVE: Final = "native id "
"""Before a provider's own id, as a key under which an edit finds what it changes (B1.4)."""

# statements of the hot path are made once: building one costs more than running it
_SEEN: Final = (
    sa.select(
        DEDUPE.c.key, TRIGGER.c.id, TRIGGER.c.thread_id, TRIGGER.c.disposition, TRIGGER.c.reason
    )
    .join(TRIGGER, TRIGGER.c.id == DEDUPE.c.trigger_id)
    .where(
        DEDUPE.c.source == sa.bindparam("source"),
        DEDUPE.c.key.in_(sa.bindparam("keys", expanding=True)),
    )
)
_ADD_PAYLOAD: Final = PAYLOAD.insert()
_ADD_TRIGGER: Final = TRIGGER.insert()
_ADD_KEY: Final = DEDUPE.insert()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What one source brought at once, in its order, and the cursor that covers it.

    ``listed`` says that it is a listing's: its cursor is another than that of the source's stream,
    and ``whole`` that the listing is at its end.
    """

    source: str
    triggers: Sequence[Trigger]
    cursor: str | None = None
    listed: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A trigger that is stored already."""

    id: TriggerId
    thread: ThreadId
    disposition: Disposition
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draft:
    """A new trigger: judged and placed, not stored yet. ``edits`` is what it changes, if known.

    ``listed``: a listing brought it, so it was not said just now.
    """

    id: TriggerId
    payload: str
    source: str
    trigger: Trigger
    who: Origin
    judgement: Judgement
    thread: ThreadId
    edits: Seen | Draft | None = None
    keys: tuple[str, ...] = ()
    listed: bool = False

    def stored(self, now_ms: int) -> StoredTrigger:
        """Return it as it is stored."""
        return StoredTrigger(
            id=self.id,
            source=self.source,
            thread=self.thread,
            trigger=self.trigger,
            trust=self.who.trust,
            received_at_ms=now_ms,
            payload=self.payload,
            edits=self.edits.id if self.edits else None,
        )


def seen(c: sa.Connection, source: str, keys: Iterable[str]) -> dict[str, Seen]:
    """Find the stored triggers that have any of these keys, by key (B2.2)."""
    return {
        row.key: Seen(
            id=TriggerId(row.id),
            thread=ThreadId(row.thread_id),
            disposition=Disposition(row.disposition),
            reason=row.reason,
        )
        for row in c.execute(_SEEN, {"source": source, "keys": sorted(keys)})
    }


# ------------------------------------------------------------------ looking
@dataclass(slots=True)
class _Book:
    """All that a batch needs to know; ``keys`` and ``places`` learn from each of its triggers."""

    keys: dict[str, dict[str, Seen | Draft]] = field(default_factory=dict)  # by source
    ours: dict[str, set[str]] = field(default_factory=dict)  # by source
    places: Places = field(default_factory=Places)
    runs: Runs = field(default_factory=Runs)


def _native(trigger: Trigger) -> str:
    return dict(trigger.context.facts).get("native_id", "")


def _asked(trigger: Trigger) -> Iterator[str]:
    """Yield the keys to look up: its own, and those of what it edits."""
    yield from trigger.dedupe
    edit_of = trigger.context.edit_of
    if edit_of:
        yield from (edit_of, NATIVE + edit_of)
    elif native := _native(trigger):
        yield NATIVE + native


def _look(c: sa.Connection, arrivals: Sequence[Arrival]) -> _Book:
    book, by_source = _Book(), dict[str, list[Trigger]]()
    for arrival in arrivals:
        by_source.setdefault(arrival.source, []).extend(arrival.triggers)
    for source, triggers in by_source.items():
        asked = {key for trigger in triggers for key in _asked(trigger)}
        book.keys[source] = {**seen(c, source, asked)} if asked else {}
        natives = {native for trigger in triggers if (native := _native(trigger))}
        book.ours[source] = receipts.ours(c, source, natives)
    wanted = {
        key for arrival in arrivals for each in arrival.triggers for key in threads.wanted(each)
    }
    book.places = threads.places(c, wanted)
    return book


# ------------------------------------------------------------------ drafting
def drafts(
    u: Unit, arrivals: Sequence[Arrival], rules: Rules, people: People
) -> list[list[Seen | Draft]]:
    """Judge and place what is new; for what was seen before, say as what.

    A draft that stands twice is a duplicate within the batch. The threads and their keys are
    stored; the drafts are not.
    """
    book, by = _look(u.c, arrivals), (rules, people)
    found = [
        [_draft(u, arrival, trigger, book, by=by) for trigger in arrival.triggers]
        for arrival in arrivals
    ]
    threads.settle(u.c, book.places)
    return found


def _draft(
    u: Unit, arrival: Arrival, trigger: Trigger, book: _Book, *, by: tuple[Rules, People]
) -> Seen | Draft:
    source, (rules, people) = arrival.source, by
    known = book.keys[source]
    for key in trigger.dedupe:
        if key in known:
            return known[key]
    if (native := _native(trigger)) in book.ours[source]:  # whoever it seems to be by (B1.5)
        if not trigger.context.edit_of and NATIVE + native in known:
            return known[NATIVE + native]  # it was told at its receipt (B6.7)
        trigger = replace(trigger, actor=replace(trigger.actor, kind=ActorKind.SELF))
    who = origin(trigger, source, people)
    if who.actor != trigger.actor:
        trigger = replace(trigger, actor=who.actor)
    edits = _edited(trigger, known)
    home = edits.thread if edits else threads.place(u, source, trigger, who.trust, into=book.places)
    trigger = book.runs.told(u.c, source, home, trigger)
    keys = dict.fromkeys(trigger.dedupe)
    if native and not trigger.context.edit_of and NATIVE + native not in known:
        keys[NATIVE + native] = None
    made = Draft(
        id=TriggerId(u.new_id("trigger")),
        payload=u.new_id("payload"),
        source=source,
        trigger=trigger,
        who=who,
        judgement=judge(rules, source, trigger, who),
        thread=home,
        edits=edits,
        keys=tuple(keys),
        listed=arrival.listed,
    )
    known.update(dict.fromkeys(keys, made))
    return made


def _edited(trigger: Trigger, known: dict[str, Seen | Draft]) -> Seen | Draft | None:
    edit_of = trigger.context.edit_of
    return (known.get(NATIVE + edit_of) or known.get(edit_of)) if edit_of else None


# ------------------------------------------------------------------ storing
def move_cursors(u: Unit, several: Sequence[Arrival]) -> None:
    """Store the last cursor of each stream of a source, with what it covers (B1.6)."""
    for source, listed, cursor in dict.fromkeys(
        (one.source, one.listed, one.cursor) for one in several if one.cursor is not None
    ):
        sources.move(u.c, source, cursor, listed=listed)
    for source in {one.source for one in several if one.whole}:
        sources.reconciled(u, source)


def insert(u: Unit, fates: Sequence[tuple[Draft, Route]], *, spill_bytes: int = 0) -> None:
    """Store drafts, each with what was decided of it: payloads, triggers, keys.

    A payload over *spill_bytes* was stored as a file beforehand; 0: none was.
    """
    if not fates:
        return
    u.c.execute(_ADD_PAYLOAD, [_payload(u, draft, spill_bytes) for draft, _ in fates])
    u.c.execute(_ADD_TRIGGER, [_row(u, draft, way) for draft, way in fates])
    keys = [
        {"source": draft.source, "key": key, "trigger_id": draft.id}
        for draft, _ in fates
        for key in draft.keys
    ]
    if keys:
        u.c.execute(_ADD_KEY, keys)


def _payload(u: Unit, draft: Draft, spill_bytes: int) -> dict[str, object]:
    raw = draft.trigger.raw
    in_a_file = 0 < spill_bytes < len(raw)
    return {
        "id": draft.payload,
        "media_type": draft.trigger.raw_type,
        "body": b"" if in_a_file else raw,
        "size": len(raw),
        "spilled": spill.digest(raw) if in_a_file else "",
        "created_at_ms": u.now_ms,
    }


def _row(u: Unit, draft: Draft, way: Route) -> dict[str, object]:
    trigger, judgement, occurred = draft.trigger, draft.judgement, draft.trigger.occurred_at
    return {
        "id": draft.id,
        "source": draft.source,
        "kind": trigger.kind,
        "thread_id": draft.thread,
        "actor_kind": draft.who.actor.kind.value,
        "actor_id": draft.who.actor.id,
        "person": draft.who.person,
        "urgent": judgement.urgent,
        "edits_id": draft.edits.id if draft.edits else None,
        "trust": int(draft.who.trust),
        "body_json": codec.dump_trigger(trigger),
        "payload_id": draft.payload,
        "occurred_at_ms": int(occurred.timestamp() * 1000) if occurred else None,
        "received_at_ms": u.now_ms,
        "verdict": judgement.verdict.value,
        "rule": judgement.rule,
        "rules_version": judgement.version,
        "disposition": way.disposition.value,
        "reason": way.reason,
    }
