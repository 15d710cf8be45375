"""Sources and the hub's own facts as rows: states, cursors, when a source was last heard."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from upright.store.tables import CURSOR, META, SOURCE
from upright.store.unit import Unit

# made once: it runs with each trigger, and building it costs more than running it
_HEARD: Final = (
    SOURCE.update()
    .where(SOURCE.c.name == sa.bindparam("source"))
    .values(heard_at_ms=sa.bindparam("at"))
)


def report(u: Unit, name: str, kind: str, *, state: str, reason: str) -> None:
    """Store a source's state."""
    values = {"kind": kind, "state": state, "reason": reason, "changed_at_ms": u.now_ms}
    if u.c.execute(SOURCE.update().where(SOURCE.c.name == name).values(**values)).rowcount == 0:
        u.c.execute(SOURCE.insert().values(name=name, **values))


def keep_only(c: sa.Connection, names: frozenset[str]) -> None:
    """Drop the rows of sources that are not configured any more."""
    c.execute(SOURCE.delete().where(SOURCE.c.name.not_in(names)))


def heard(u: Unit, name: str) -> None:
    """Note that a source brought something."""
    u.c.execute(_HEARD, {"source": name, "at": u.now_ms})


def reconciled(u: Unit, name: str) -> None:
    """Note that a source was listed to its end."""
    done = SOURCE.update().where(SOURCE.c.name == name)
    u.c.execute(done.values(reconciled_at_ms=u.now_ms))


def cursor(c: sa.Connection, name: str, *, listed: bool = False) -> str | None:
    """Return how far a source was read: its stream, or its listing."""
    key = _stream(name, listed=listed)
    found: str | None = c.scalar(sa.select(CURSOR.c.value).where(CURSOR.c.source == key))
    return found


def move(c: sa.Connection, name: str, value: str, *, listed: bool) -> None:
    """Store how far a source was read."""
    key = _stream(name, listed=listed)
    c.execute(CURSOR.delete().where(CURSOR.c.source == key))
    c.execute(CURSOR.insert().values(source=key, value=value))


def _stream(name: str, *, listed: bool) -> str:
    return f"{name} listed" if listed else name  # no source's name has a space


def hub_id(u: Unit) -> str:
    """Return this database's hub id; made once."""
    found: str | None = u.c.scalar(sa.select(META.c.value).where(META.c.key == "hub_id"))
    if found is None:
        found = u.new_id("hub")
        u.c.execute(META.insert().values(key="hub_id", value=found))
    return found
