"""Rules as rows: versions of the gate's rules as text, by whom, when; the newest holds (B3.4)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.store.errors import NotNowError, UnknownIdError
from upright.store.events import About, record
from upright.store.tables import RULES, TRIGGER
from upright.store.unit import Unit

FILE: Final = "file"
"""By whom a version is that came with the configuration."""
HITS_MS: Final = 7 * 24 * 3600 * 1000

_NEWEST: Final = sa.select(sa.func.max(RULES.c.seq))


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of the rules: its number, its text as TOML, by whom, and when."""

    number: int
    text: str
    by: str
    at_ms: int


def newest(c: sa.Connection) -> int:
    """Return the number of the version that holds; 0 while there is none."""
    return int(c.scalar(_NEWEST) or 0)


def read(c: sa.Connection, number: int | None = None) -> Version:
    """Read a version, the newest when *number* is None; UnknownIdError when there is none."""
    wanted = newest(c) if number is None else number
    row = c.execute(sa.select(RULES).where(RULES.c.seq == wanted)).one_or_none()
    if row is None:
        named = f"rules {wanted}"
        raise UnknownIdError(named)
    return _version(row)


def history(c: sa.Connection, limit: int) -> list[Version]:
    """List versions, the newest first."""
    return [_version(row) for row in c.execute(_ordered(RULES.c.seq.is_not(None), limit))]


def _version(row: sa.Row[tuple[object, ...]]) -> Version:
    return Version(number=int(row.seq), text=row.text, by=row.by, at_ms=row.at_ms)


def _ordered(which: sa.ColumnElement[bool], limit: int) -> sa.Select[tuple[object, ...]]:
    return sa.select(RULES).where(which).order_by(RULES.c.seq.desc()).limit(limit)


def take_over(u: Unit, text: str) -> int:
    """Make the configuration's rules a version if the last one that came from it was another.

    A person's edit stays in force as long as the file says what it said. Return the number that
    holds now.
    """
    row = u.c.execute(_ordered(RULES.c.by == FILE, 1)).one_or_none()
    return newest(u.c) if row is not None and row.text == text else add(u, text, by=FILE)


def edit(u: Unit, text: str, *, by: str, base: int) -> int:
    """Store a person's version that was made from number *base*; return its number.

    *text* was read by ``settings.rules`` before: what stands here is sound.

    Raises:
        NotNowError: another version came meanwhile; nothing has changed.
    """
    now = newest(u.c)
    if now != base:
        why = f"version {now} came meanwhile; look at it: upright rules diff {base} {now}"
        named = f"rules {base}"
        raise NotNowError(named, why)
    return now if now and read(u.c).text == text else add(u, text, by=by)


def add(u: Unit, text: str, *, by: str) -> int:
    """Store a version; it holds from the next trigger on."""
    version = hashlib.sha256(text.encode()).hexdigest()[:12]
    stored = u.c.execute(
        RULES.insert()
        .values(version=version, text=text, by=by, at_ms=u.now_ms)
        .returning(RULES.c.seq)
    )
    number = int(stored.scalar_one())
    record(u, "rules.changed", About(), {"version": number, "by": by})
    return number


def hits(c: sa.Connection, since_ms: int) -> dict[str, int]:
    """Count, by the rule's name, the triggers that each rule judged since then."""
    counted = (
        sa.select(TRIGGER.c.rule, sa.func.count())
        .where(TRIGGER.c.received_at_ms >= since_ms)
        .group_by(TRIGGER.c.rule)
    )
    return {str(rule): int(number) for rule, number in c.execute(counted)}
