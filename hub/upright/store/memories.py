"""Memory as rows: what was done with a kind of trigger, what the router wrote down (B5.4).

Each entry names its sources and its author, and keeps the taint of what it was made from. What is
no longer true is superseded: it stays, and names what took its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa

from upright.core.ids import MemoryId
from upright.core.mandate import Trust
from upright.core.memory import MAX_ROUTINGS, MAX_SAID, Memory, MemoryKind, cue, joined
from upright.core.trigger import StoredTrigger
from upright.store import codec
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.events import About, record
from upright.store.tables import MEMORY, WORK
from upright.store.unit import Unit

_LIVE: Final = sa.text("memory.superseded_by IS NULL")  # written out: only so is its index taken
_BY_CUE: Final = sa.select(MEMORY).where(
    _LIVE,
    MEMORY.c.kind == MemoryKind.ROUTING.value,
    MEMORY.c.cue.in_(sa.bindparam("cues", expanding=True)),
)
_READ: Final = sa.select(MEMORY).where(MEMORY.c.id == sa.bindparam("memory"))
CODE: Final = "code"
"""The author of what no model wrote."""
USED: Final = "memory.used"
"""The stop at which it is noted which memory the router was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes: which agent, in which turn of which session, and how tainted they are."""

    author: str
    session: str
    turn: str
    trust: Trust

    @property
    def about(self) -> About:
        """What an event of this writer is about."""
        return About(session_id=self.session, turn_id=self.turn)


# ------------------------------------------------------------------ what code notes
def routed(
    u: Unit, stored: StoredTrigger, outcome: str, by: Writer, *, work: str | None = None
) -> str:
    """Note what was done with a kind of trigger; return the entry's id.

    The same again counts up; something else supersedes what was noted before. The text is made of
    ids and names that code knows: nothing of the trigger's own words stands in it.
    """
    known = cue(stored.source, stored.trigger)
    sources = (stored.id, *([work] if work else []))
    before = next(iter(_by_cue(u.c, [known]).values()), None)
    trust = min(by.trust, stored.trust)
    if before is not None and before.text == outcome:
        values = {
            "sources_json": codec.STRINGS.dump(joined(before.sources, sources)),
            "times": before.times + 1,
            "trust": int(min(trust, before.trust)),
            "at_ms": u.now_ms,
        }
        u.c.execute(MEMORY.update().where(MEMORY.c.id == before.id).values(**values))
        return before.id
    code = replace(by, author=CODE, trust=trust)
    made = _insert(u, code, kind=MemoryKind.ROUTING, text=outcome, sources=sources, known=known)
    if before is not None:
        _supersede(u, before.id, made)
    _make_room(u)
    return made


def _make_room(u: Unit) -> None:
    """Forget the routing that was used the longest ago, where there are too many."""
    routings = sa.and_(_LIVE, MEMORY.c.kind == MemoryKind.ROUTING.value)
    if int(u.c.scalar(sa.select(sa.func.count()).where(routings)) or 0) <= MAX_ROUTINGS:
        return
    oldest = sa.select(MEMORY.c.id).where(routings).order_by(MEMORY.c.at_ms, MEMORY.c.id).limit(1)
    u.c.execute(MEMORY.delete().where(MEMORY.c.id == oldest.scalar_subquery()))


def of_triggers(c: sa.Connection, triggers: Sequence[StoredTrigger]) -> dict[str, Memory]:
    """Return by trigger what was done with its kind before."""
    cues = {one.id: cue(one.source, one.trigger) for one in triggers}
    known = _by_cue(c, set(cues.values()))
    return {one: known[name] for one, name in cues.items() if name in known}


def _by_cue(c: sa.Connection, cues: Collection[str]) -> dict[str, Memory]:
    rows = c.execute(_BY_CUE, {"cues": sorted(cues)}) if cues else ()
    return {row.cue: _memory(row) for row in rows}


def hint(c: sa.Connection, memory: Memory) -> str:
    """Say what was done before, and what came of it, in ids and words of ours alone."""
    works = [one for one in memory.sources if one.startswith("wk_")]
    state = c.scalar(sa.select(WORK.c.state).where(WORK.c.id == works[-1])) if works else None
    came = f", last {works[-1]} {state}" if state else ""
    times = "once" if memory.times == 1 else f"{memory.times} times"
    return f"remembered {memory.id}: this kind before, {times}: {memory.text}{came}"


# ------------------------------------------------------------------ what the router writes
def remember(
    u: Unit, text: str, sources: Sequence[str], by: Writer, *, supersedes: str = ""
) -> MemoryId:
    """Write down a sentence, in the place of another one if it names that.

    Raises:
        UnknownIdError: it supersedes what is not there.
        NotNowError: that was superseded already, or there is no room for another.
    """
    before = read(u.c, supersedes) if supersedes else None
    if before is not None and before.superseded_by is not None:
        raise NotNowError(before.id, f"it was superseded by {before.superseded_by}")
    said = sa.and_(_LIVE, MEMORY.c.kind == MemoryKind.SAID.value)
    have = int(u.c.scalar(sa.select(sa.func.count()).where(said)) or 0)
    if have >= MAX_SAID and (before is None or before.kind is not MemoryKind.SAID):
        raise NotNowError("memory", f"it holds {have} sentences, which is the most: supersede one")
    made = _insert(u, by, kind=MemoryKind.SAID, text=text, sources=sources)
    if before is not None:
        _supersede(u, before.id, made)
    record(u, "memory.written", by.about, {"memory": made, "supersedes": supersedes})
    return made


def live(c: sa.Connection) -> list[Memory]:
    """Read all that is remembered and was not superseded, the newest first."""
    rows = c.execute(sa.select(MEMORY).where(_LIVE).order_by(MEMORY.c.at_ms.desc(), MEMORY.c.id))
    return [_memory(row) for row in rows]


def read(c: sa.Connection, memory: str) -> Memory:
    """Read an entry, superseded or not; UnknownIdError when there is none."""
    row = c.execute(_READ, {"memory": memory}).one_or_none()
    if row is None:
        raise UnknownIdError(memory)
    return _memory(row)


def used(u: Unit, about: About, memories: Collection[str]) -> None:
    """Note which memories the router was shown, and with which trigger."""
    record(u, USED, about, {"memory": sorted(memories)})


# ------------------------------------------------------------------ rows
def _insert(
    u: Unit, by: Writer, *, kind: MemoryKind, text: str, sources: Sequence[str], known: str = ""
) -> MemoryId:
    made = MemoryId(u.new_id("memory"))
    row = {
        "id": made,
        "kind": kind.value,
        "cue": known,
        "text": text,
        "sources_json": codec.STRINGS.dump(joined((), sources)),
        "author": by.author,
        "session_id": by.session,
        "turn_id": by.turn,
        "trust": int(by.trust),
        "times": 1,
        "at_ms": u.now_ms,
    }
    u.c.execute(MEMORY.insert(), row)
    return made


def _supersede(u: Unit, old: str, new: str) -> None:
    values = {"superseded_by": new, "superseded_at_ms": u.now_ms}
    u.c.execute(MEMORY.update().where(MEMORY.c.id == old).values(**values))


def _memory(row: sa.Row[Any]) -> Memory:
    return Memory(
        id=row.id,
        kind=MemoryKind(row.kind),
        cue=row.cue,
        text=row.text,
        sources=codec.STRINGS.load(row.sources_json),
        author=row.author,
        trust=Trust(row.trust),
        times=row.times,
        at_ms=row.at_ms,
        superseded_by=row.superseded_by,
    )


def shown(memory: Memory) -> Mapping[str, object]:
    """Return an entry as the router and people are shown it."""
    return {
        "id": memory.id,
        "kind": memory.kind.value,
        "about": memory.cue,
        "text": memory.text,
        "sources": list(memory.sources),
        "by": memory.author,
        "trust": memory.trust.label,
        "times": memory.times,
        "superseded_by": memory.superseded_by,
    }


# ------------------------------------------------------------------ age
def prune(c: sa.Connection, before_ms: int, most: int) -> int:
    """Delete what was superseded before a time; return how many."""
    old = sa.select(MEMORY.c.id).where(
        sa.text("memory.superseded_by IS NOT NULL"), MEMORY.c.superseded_at_ms < before_ms
    )
    found = list(c.scalars(old.order_by(MEMORY.c.superseded_at_ms).limit(most)))
    c.execute(MEMORY.delete().where(MEMORY.c.id.in_(found)))
    return len(found)
