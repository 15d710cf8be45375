"""Schema: which revision a database file is at, and how it gets to this program's.

Nothing here runs by itself: opening a store only checks. Each function blocks: not for a loop.
"""

from __future__ import annotations

import sqlite3
from functools import cache
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from upright.store import tables
from upright.store.errors import RevisionError, StoreUnavailableError
from upright.store.guard import Guard
from upright.store.writer import open_engine

METADATA: Final = tables.Meta.metadata
_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_INIT: Final = "upright init"
_MIGRATE: Final = "upright db migrate"


def configuration() -> Config:
    """Return Alembic's settings: where the migrations are; a connection is handed over apart."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config


@cache
def head() -> str:
    """Return the revision that this program needs."""
    found = ScriptDirectory.from_config(configuration()).get_current_head()
    if found is None:
        raise LookupError("this program was installed without its migrations")
    return found


def current(path: Path) -> str | None:
    """Return the revision of a file; None when it has no schema, or isn't there.

    Raises:
        StoreUnavailableError: the file can't be read, or is no database.
    """
    if not path.is_file():
        return None
    engine = open_engine(str(path), read_only=True)
    try:
        with engine.connect() as connection:
            return _revision(connection)
    except sa.exc.DatabaseError as error:
        raise StoreUnavailableError(str(path), str(error.orig)) from error
    finally:
        engine.dispose()


def sqlite_version() -> tuple[int, int, int]:
    """Return the version of the SQLite library that this Python has."""
    return sqlite3.sqlite_version_info


def check(path: Path) -> None:
    """Refuse a file that is not at this program's revision.

    Raises:
        RevisionError: names the command that sets it right.
        StoreUnavailableError: the file can't be read, or is no database.
    """
    found, wanted = current(path), head()
    if found != wanted:
        raise RevisionError(found=found, wanted=wanted, command=_remedy(path, found))


def create(path: Path) -> None:
    """Make a fresh database at this program's revision, for its owner's eyes only.

    Raises:
        FileExistsError: there is a database already; nothing was changed.
        StoreInUseError: another process has it open.
    """
    path = path.resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with Guard(path):
        if current(path) is not None:
            raise FileExistsError(str(path))
        path.touch(mode=0o600)
        engine = open_engine(str(path))
        try:
            with engine.begin() as connection:
                METADATA.create_all(connection)
                command.stamp(_connected(connection), "head")
        finally:
            engine.dispose()


def migrate(path: Path) -> tuple[str | None, str]:
    """Bring an existing file to this program's revision, whole or not at all: (before, after).

    Raises:
        RevisionError: there is no file, or a newer program made it.
        StoreInUseError: a hub runs on it.
        StoreUnavailableError: the file can't be read, or is no database.
    """
    path = path.resolve()
    with Guard(path):
        found, wanted = current(path), head()
        if not path.is_file() or not _known(found):
            raise RevisionError(found=found, wanted=wanted, command=_remedy(path, found))
        engine = open_engine(str(path))
        try:
            with engine.begin() as connection:
                command.upgrade(_connected(connection), "head")
        finally:
            engine.dispose()
    return found, wanted


def _connected(connection: sa.Connection) -> Config:
    config = configuration()
    config.attributes["connection"] = connection
    return config


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    return found


def _known(revision: str | None) -> bool:
    """Say whether this program has the way from *revision* to its own."""
    scripts = ScriptDirectory.from_config(configuration())
    return revision is None or revision in {script.revision for script in scripts.walk_revisions()}


def _remedy(path: Path, found: str | None) -> str:
    if not path.is_file():
        return _INIT
    return _MIGRATE if _known(found) else ""
