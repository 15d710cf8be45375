"""Schema: which revision a database is at, and how it gets to this program's.

Nothing here runs by itself: opening a store only checks. Each function blocks: not for a loop.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Final, TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from upright.store import tables, unfit
from upright.store.address import Address, Server
from upright.store.errors import RevisionError, StoreUnavailableError
from upright.store.guard import Guard
from upright.store.hold import take
from upright.store.pool import Fate, PoolLimits, fate, said
from upright.store.pool import open_engine as open_pool
from upright.store.writer import open_engine

T = TypeVar("T")
METADATA: Final = tables.Meta.metadata
_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_INIT: Final = "upright init"
_MIGRATE: Final = "upright db migrate"
_PATIENT: Final = PoolLimits(writers=1, readers=0, statement_s=600.0)  # a migration takes its time


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


def current(where: Address) -> str | None:
    """Return the revision of a database; None when it has no schema, or the file isn't there.

    Raises:
        StoreUnavailableError: it can't be read or reached, or is no database.
    """
    if not isinstance(where, Path):
        return on_server(where, revision)
    if not where.is_file():
        return None
    with _file(where, read_only=True) as engine, engine.connect() as connection:
        return revision(connection)


@contextmanager
def _file(path: Path, *, read_only: bool = False, is_new: bool = False) -> Iterator[sa.Engine]:
    """Open a file for a moment; a file that can't be had is said by its name."""
    engine = open_engine(str(path), read_only=read_only, is_new=is_new)
    try:
        yield engine
    except sa.exc.DatabaseError as error:
        if unfit.unfit(error) is None:
            raise  # a statement's own fault
        raise StoreUnavailableError(str(path), unfit.said(error)) from error
    finally:
        engine.dispose()


def sqlite_version() -> tuple[int, int, int]:
    """Return the version of the SQLite library that this Python has."""
    return sqlite3.sqlite_version_info


def check(where: Address) -> None:
    """Refuse a database that is not at this program's revision.

    Raises:
        RevisionError: names the command that sets it right.
        StoreUnavailableError: it can't be read or reached, or is no database.
    """
    require(where, current(where))


def require(where: Address, found: str | None) -> None:
    """Refuse a database whose revision *found* is not this program's.

    Raises:
        RevisionError: names the command that sets it right.
    """
    if found != head():
        raise RevisionError(found=found, wanted=head(), command=_remedy(where, found))


def create(where: Address) -> None:
    """Fill a fresh database, at this program's revision; a file is for its owner's eyes only.

    Raises:
        FileExistsError: it has a schema already.
        StoreInUseError: another process has it open.
        StoreUnavailableError: the server can't be reached, or has no database of this name; the
            file can't be written.
    """
    if not isinstance(where, Path):
        if not on_server(where, partial(fill, where=where)):
            raise FileExistsError(str(where))
        return
    path = where.resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with Guard(path):
        if current(path) is not None:
            raise FileExistsError(str(path))
        path.touch(mode=0o600)
        with _file(path, is_new=True) as engine, engine.begin() as connection:
            METADATA.create_all(connection)
            command.stamp(_connected(connection), "head")


def migrate(where: Address) -> tuple[str | None, str]:
    """Bring an existing database to this program's revision, whole or not at all: (before, after).

    Raises:
        RevisionError: there is no file, or a newer program made it.
        StoreInUseError: a hub runs on it.
        StoreUnavailableError: it can't be read or reached, or is no database.
    """
    if not isinstance(where, Path):
        return on_server(where, partial(_upgrade, where=where)), head()
    path = where.resolve()
    with Guard(path):
        found = current(path)
        if not path.is_file():
            raise RevisionError(found=found, wanted=head(), command=_INIT)
        with _file(path) as engine, engine.begin() as connection:
            _move(connection, path, found)
    return found, head()


def revision(connection: sa.Connection) -> str | None:
    """Return the revision of the database behind a connection."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    return found


def _move(connection: sa.Connection, where: Address, found: str | None) -> None:
    if not _known(found):
        raise RevisionError(found=found, wanted=head(), command=_remedy(where, found))
    command.upgrade(_connected(connection), "head")


def _connected(connection: sa.Connection) -> Config:
    config = configuration()
    config.attributes["connection"] = connection
    return config


def _known(found: str | None) -> bool:
    """Say whether this program has the way from *found* to its own."""
    scripts = ScriptDirectory.from_config(configuration())
    return found is None or found in {script.revision for script in scripts.walk_revisions()}


def _remedy(where: Address, found: str | None) -> str:
    if found is None and not (isinstance(where, Path) and where.is_file()):
        return _INIT
    return _MIGRATE if _known(found) else ""


# ------------------------------------------------------------------ on a server
def on_server(
    server: Server, job: Callable[[sa.Connection], T], *, isolation: str = "READ COMMITTED"
) -> T:
    """Run *job* in a transaction on a connection of its own; it may take its time.

    Raises:
        StoreUnavailableError: the server can't be reached, or went away.
    """
    engine = open_pool(server, _PATIENT).execution_options(isolation_level=isolation)

    async def run() -> T:
        try:
            async with engine.begin() as connection:
                return await connection.run_sync(job)
        except (OSError, sa.exc.DBAPIError) as error:
            if fate(error) is Fate.OWN:
                raise
            raise StoreUnavailableError(str(server), said(error)) from error
        finally:
            await engine.dispose()

    return asyncio.run(run())


def fill(connection: sa.Connection, *, where: Server) -> bool:
    """Make the tables on a server; False when there is a schema already."""
    take(connection, where)
    if revision(connection) is not None:
        return False
    METADATA.create_all(connection)
    command.stamp(_connected(connection), "head")
    return True


def _upgrade(connection: sa.Connection, *, where: Server) -> str | None:
    take(connection, where)
    found = revision(connection)
    _move(connection, where, found)
    return found
