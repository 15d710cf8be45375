"""Persons as rows: people and ids beside those of the configuration: the identity map (B6.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import sqlalchemy as sa

from upright.api import ActorKind
from upright.core.trigger import People, Person
from upright.core.work import TERMINAL
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.events import About, record
from upright.store.tables import META, PERSON, PERSON_ID, TRIGGER, WORK
from upright.store.unit import Unit

KINDS: Final = frozenset({ActorKind.OPERATOR, ActorKind.MEMBER, ActorKind.CONTACT})
MARK: Final = "people"
"""The key under which it is counted how often the identity map has changed."""
_MARK: Final = sa.select(META.c.value).where(META.c.key == MARK)
_OPEN_OF: Final = (
    sa.select(WORK.c.id, WORK.c.thread_id)
    .join(TRIGGER, TRIGGER.c.id == WORK.c.trigger_id)
    .where(
        TRIGGER.c.person == sa.bindparam("person"),
        sa.literal_column("trigger.person <> ''"),
        WORK.c.state.not_in(sorted(state.value for state in TERMINAL)),
        WORK.c.thread_id != sa.bindparam("thread"),
    )
    .order_by(WORK.c.id.desc())
    .limit(5)
)


def mark(c: sa.Connection) -> str:
    """Return a text that changes with every change of the map."""
    return str(c.scalar(_MARK) or "0")


def known(c: sa.Connection, configured: People) -> People:
    """Return the configuration's identity map with what was added to it.

    The configuration goes before: it alone says what kind its people are, and whose its ids are.
    """
    kinds = {row.name: ActorKind(row.kind) for row in c.execute(sa.select(PERSON))}
    kinds |= {person.name: person.kind for person in configured.by_id.values()}
    added = {
        row.key: Person(name=row.name, kind=kinds[row.name], ids=frozenset({row.key}))
        for row in c.execute(sa.select(PERSON_ID))
        if row.name in kinds
    }
    return replace(configured, by_id={**added, **configured.by_id})


def add(u: Unit, name: str, kind: ActorKind, configured: People) -> None:
    """Add a person who has no id yet.

    Raises:
        NotNowError: there is one of this name, or nobody can be of this kind.
    """
    if kind not in KINDS:
        raise NotNowError(name, "a person is an operator, a member or a contact")
    if name in _names(u.c, configured):
        raise NotNowError(name, "there is a person of this name; link the id to them")
    u.c.execute(PERSON.insert().values(name=name, kind=kind.value, added_at_ms=u.now_ms))
    _changed(u, "person.added", {"name": name, "kind": kind.value})


def link(u: Unit, name: str, key: str, configured: People) -> None:
    """Say that an id, ``source:id`` or ``*:id``, is this person's; saying it twice is no error.

    Work that this id has opened and that goes on is known to be theirs from now on.

    Raises:
        UnknownIdError: there is no such person.
        NotNowError: it is no id, or somebody else's.
    """
    source, colon, actor = key.partition(":")
    if not (source and colon and actor):
        raise NotNowError(key, 'an id is "source:id", or "*:id" in every source')
    if name not in _names(u.c, configured):
        raise UnknownIdError(name)
    owner = configured.by_id[key].name if key in configured.by_id else None
    owner = owner or u.c.scalar(sa.select(PERSON_ID.c.name).where(PERSON_ID.c.key == key))
    if owner == name:
        return
    if owner is not None:
        raise NotNowError(key, f"this id is {owner}'s")
    u.c.execute(PERSON_ID.insert().values(key=key, name=name))
    _open_work_is_theirs(u, name, source, actor)
    _changed(u, "person.linked", {"name": name, "id": key})


def _open_work_is_theirs(u: Unit, name: str, source: str, actor: str) -> None:
    live = sa.select(WORK.c.trigger_id).where(
        WORK.c.state.not_in(sorted(state.value for state in TERMINAL))
    )
    mine = [TRIGGER.c.id.in_(live), TRIGGER.c.actor_id == actor, TRIGGER.c.person == ""]
    if source != "*":
        mine.append(TRIGGER.c.source == source)
    bots = (ActorKind.BOT.value, ActorKind.SELF.value, ActorKind.SYSTEM.value)
    theirs = TRIGGER.update().where(*mine, TRIGGER.c.actor_kind.not_in(bots))
    u.c.execute(theirs.values(person=name))


def listed(c: sa.Connection, configured: People) -> list[Mapping[str, object]]:
    """List people by name: ``name``, ``kind``, ``ids`` in order, and who is ``configured``."""
    now = known(c, configured)
    ids: dict[str, list[str]] = {name: [] for name in _names(c, configured)}
    for key, person in now.by_id.items():
        ids[person.name].append(key)
    kinds = {row.name: str(row.kind) for row in c.execute(sa.select(PERSON))}
    kinds |= {person.name: person.kind.value for person in now.by_id.values()}
    ours = {person.name for person in configured.by_id.values()}
    return [
        {"name": name, "kind": kinds[name], "ids": sorted(ids[name]), "configured": name in ours}
        for name in sorted(ids)
    ]


def open_elsewhere(c: sa.Connection, person: str, thread: str) -> Sequence[tuple[str, str]]:
    """Return (work, thread) of a person's open items on other threads, newest first, up to 5."""
    rows = c.execute(_OPEN_OF, {"person": person, "thread": thread}) if person else ()
    return [(str(row.id), str(row.thread_id)) for row in rows]


def _names(c: sa.Connection, configured: People) -> set[str]:
    return set(c.scalars(sa.select(PERSON.c.name))) | {
        person.name for person in configured.by_id.values()
    }


def _changed(u: Unit, stop: str, data: Mapping[str, object]) -> None:
    """Leave a trace, and count: whoever holds a copy of the map sees that it is old."""
    count = str(int(mark(u.c)) + 1)
    u.c.execute(META.delete().where(META.c.key == MARK))
    u.c.execute(META.insert().values(key=MARK, value=count))
    record(u, stop, About(), data)
