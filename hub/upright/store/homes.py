"""Homes as rows: every version of a file with its author and taint; the newest one holds (B17.1).

The store has the truth, so that hubs stay equal; a folder on disk mirrors it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from upright.core import home
from upright.core.errors import InvalidError
from upright.core.home import FileKind, HomeFile
from upright.core.mandate import Trust
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.events import About, record
from upright.store.plain import Plain, listed
from upright.store.tables import AGENT, HOME_FILE, SESSION, WORK
from upright.store.unit import Unit

_OF: Final = HOME_FILE.c.agent == sa.bindparam("of_agent")
_UP_TO: Final = HOME_FILE.c.seq <= sa.bindparam("up_to")
_NEWEST: Final = (
    sa.select(HOME_FILE.c.path, sa.func.max(HOME_FILE.c.version).label("version"))
    .where(_OF, _UP_TO)
    .group_by(HOME_FILE.c.path)
    .subquery()
)
# statements of the hot path are made once: building one costs more than running it
_READ: Final = (
    sa.select(HOME_FILE)
    .join(
        _NEWEST,
        sa.and_(HOME_FILE.c.path == _NEWEST.c.path, HOME_FILE.c.version == _NEWEST.c.version),
    )
    .where(_OF, sa.not_(HOME_FILE.c.deleted))
    .order_by(HOME_FILE.c.path)
)
_SEQ: Final = sa.select(sa.func.coalesce(sa.func.max(HOME_FILE.c.seq), 0)).where(_OF)
_OPEN: Final = sa.text("work.state <> 'completed' AND work.state <> 'cancelled'")  # its index
NOW: Final = 2**62
"""Up to here: every version there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """A file to be written. *expects* is the version it was made from, where that matters."""

    path: str
    text: str
    author: str
    trust: Trust
    expects: int | None = None


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


# ------------------------------------------------------------------ agents
def agents(c: sa.Connection) -> list[Plain]:
    """List agents by name: ``name``, ``template``, ``added_by``, ``added_at_ms``."""
    return listed(c, sa.select(AGENT).order_by(AGENT.c.name))


def exists(c: sa.Connection, agent: str) -> bool:
    """Say whether there is an agent of this name."""
    return c.scalar(sa.select(AGENT.c.name).where(AGENT.c.name == agent)) is not None


def must_exist(c: sa.Connection, agent: str) -> None:
    """Raise UnknownIdError unless there is an agent of this name."""
    if not exists(c, agent):
        raise UnknownIdError(agent)


def add(u: Unit, agent: str, template: str, files: Mapping[str, str], *, by: str) -> None:
    """Make an agent with the files of a template as its home.

    Raises:
        InvalidError: the name or a file is not one that a home may have.
        NotNowError: there is one of this name.
    """
    home.check_name(agent)
    if exists(u.c, agent):
        raise NotNowError(agent, "there is an agent of this name")
    row = {"name": agent, "template": template, "added_by": by, "added_at_ms": u.now_ms}
    u.c.execute(AGENT.insert(), row)
    for path, text in sorted(files.items()):
        author = f"template {template}"
        write(u, agent, Writing(path=path, text=text, author=author, trust=Trust.OPERATOR))
    record(u, "agent.added", About(), {"agent": agent, "template": template, "by": by})


_OF_SESSION: Final = sa.select(SESSION.c.agent, SESSION.c.home_seq).where(
    SESSION.c.id == sa.bindparam("session")
)


def of_session(c: sa.Connection, session: str) -> tuple[str, int]:
    """Return a session's agent, and up to where it knows that agent's home."""
    row = c.execute(_OF_SESSION, {"session": session}).one_or_none()
    if row is None:
        raise UnknownIdError(session)
    return str(row.agent), int(row.home_seq)


def open_items(c: sa.Connection, agent: str) -> list[Plain]:
    """List an agent's open items, the newest first: ``id``, ``goal``, ``state``, ``session``."""
    mine = (
        sa.select(WORK.c.id, WORK.c.goal, WORK.c.state, WORK.c.session_id.label("session"))
        .join(SESSION, SESSION.c.id == WORK.c.session_id)
        .where(SESSION.c.agent == agent, _OPEN)
    )
    return listed(c, mine.order_by(WORK.c.id.desc()))


def check_free(u: Unit, agent: str) -> None:
    """Refuse another item for an agent that has as many as it may.

    Raises:
        NotNowError: it has.
    """
    most = u.terms.bounds.for_agent(agent).open_items
    if len(open_items(u.c, agent)) >= most:
        raise NotNowError(agent, f"it has {most} open items, which is the most")


# ------------------------------------------------------------------ files
def newest_seq(c: sa.Connection, agent: str) -> int:
    """Return the number that stands for an agent's whole home as it is now."""
    return int(c.scalar(_SEQ, {"of_agent": agent}) or 0)


def read(c: sa.Connection, agent: str, up_to: int = NOW) -> tuple[HomeFile, ...]:
    """Read a home's files by path, as they were at a number of :func:`newest_seq`."""
    rows = c.execute(_READ, {"of_agent": agent, "up_to": up_to})
    return tuple(_file(row) for row in rows)


def find(c: sa.Connection, agent: str, path: str, up_to: int = NOW) -> HomeFile | None:
    """Read one file of a home."""
    return next((file for file in read(c, agent, up_to) if file.path == path), None)


def versions(c: sa.Connection, agent: str, path: str) -> list[Plain]:
    """List all kept versions of a file, the newest first."""
    mine = sa.and_(HOME_FILE.c.agent == agent, HOME_FILE.c.path == path)
    return listed(c, sa.select(HOME_FILE).where(mine).order_by(HOME_FILE.c.version.desc()))


def write(u: Unit, agent: str, writing: Writing) -> HomeFile:
    """Store a new version of a file; the same text again is none.

    A text is no more trusted than the one that it was made from.

    Raises:
        InvalidError: it has no place in a home.
        NotNowError: another version came meanwhile.
    """
    home.check_file(writing.path, writing.text)
    _alone(u.c, agent)
    files = {file.path: file for file in read(u.c, agent)}
    before = files.get(writing.path)
    have = before.version if before else 0
    if writing.expects is not None and writing.expects != have:
        raise NotNowError(writing.path, f"version {have} is there now; read it first")
    sizes = {path: len(file.text.encode()) for path, file in files.items()}
    home.check_room(sizes, writing.path, len(writing.text.encode()))
    if before is not None and before.text == writing.text:
        return before
    trust = min(writing.trust, before.trust) if before else writing.trust
    made = HomeFile(
        path=writing.path,
        version=_last(u.c, agent, writing.path) + 1,
        text=writing.text,
        sha256=digest(writing.text),
        author=writing.author,
        trust=trust,
        at_ms=u.now_ms,
    )
    _insert(u, agent, made, deleted=False)
    return made


def write_note(u: Unit, agent: str, writing: Writing) -> HomeFile:
    """Store a note of an agent's own: the rest of its home is its owner's to write.

    Raises:
        InvalidError: it is no note, or has no place in a home.
        NotNowError: another version came meanwhile.
    """
    if not is_note(writing.path):
        raise InvalidError(path=writing.path, must_be="notes/NAME.md")
    return write(u, agent, writing)


def delete(u: Unit, agent: str, path: str, *, by: str) -> bool:
    """Delete a file: its versions stay, and it is there no more. False: it was not there."""
    _alone(u.c, agent)
    before = find(u.c, agent, path)
    if before is None:
        return False
    gone = HomeFile(
        path=path,
        version=before.version + 1,
        text="",
        sha256=digest(""),
        author=by,
        trust=Trust.OPERATOR,
        at_ms=u.now_ms,
    )
    _insert(u, agent, gone, deleted=True)
    return True


def _alone(c: sa.Connection, agent: str) -> None:
    """Let one transaction at a time write to a home, so that its versions count up in order."""
    c.execute(sa.select(AGENT.c.name).where(AGENT.c.name == agent).with_for_update())


def _last(c: sa.Connection, agent: str, path: str) -> int:
    mine = sa.and_(HOME_FILE.c.agent == agent, HOME_FILE.c.path == path)
    return int(c.scalar(sa.select(sa.func.max(HOME_FILE.c.version)).where(mine)) or 0)


def _insert(u: Unit, agent: str, file: HomeFile, *, deleted: bool) -> None:
    row = {
        "agent": agent,
        "path": file.path,
        "version": file.version,
        "text": file.text,
        "sha256": file.sha256,
        "author": file.author,
        "trust": int(file.trust),
        "deleted": deleted,
        "at_ms": u.now_ms,
    }
    u.c.execute(HOME_FILE.insert(), row)
    told = {"agent": agent, "path": file.path, "version": file.version, "by": file.author}
    record(u, "home.deleted" if deleted else "home.written", About(), told)


def _file(row: sa.Row[Any]) -> HomeFile:
    return HomeFile(
        path=row.path,
        version=row.version,
        text=row.text,
        sha256=row.sha256,
        author=row.author,
        trust=Trust(row.trust),
        at_ms=row.at_ms,
    )


def roles(c: sa.Connection) -> Sequence[tuple[str, str]]:
    """Return (name, what it is for) of every agent, by name."""
    return [(str(one["name"]), role(c, one["name"])) for one in agents(c)]


def role(c: sa.Connection, agent: str) -> str:
    """Say what an agent is for, by its guide."""
    guide = find(c, agent, home.GUIDE)
    return home.role_of(guide.text) if guide else ""


def is_note(path: str) -> bool:
    """Say whether a path is that of a note: what an agent may write itself."""
    return home.kind_of(path) is FileKind.NOTE


# ------------------------------------------------------------------ age
def prune(c: sa.Connection, before_ms: int, most: int) -> int:
    """Take away old versions that a newer one has replaced since *before_ms*; return how many."""
    newer = HOME_FILE.alias()
    replaced = (
        sa.exists()
        .where(newer.c.agent == HOME_FILE.c.agent, newer.c.path == HOME_FILE.c.path)
        .where(newer.c.version > HOME_FILE.c.version, newer.c.at_ms < before_ms)
    )
    old = sa.select(HOME_FILE.c.seq).where(HOME_FILE.c.at_ms < before_ms, replaced)
    found = list(c.scalars(old.order_by(HOME_FILE.c.seq).limit(most)))
    c.execute(HOME_FILE.delete().where(HOME_FILE.c.seq.in_(found)))
    return len(found)
