"""Pool: connections to PostgreSQL, bounded in number and in time, and what their errors mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from importlib.util import find_spec
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from upright.core.backoff import Backoff
from upright.store.address import Server, driven
from upright.store.errors import StoreUnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """Bounds. ``writers`` and ``readers`` are connections; what finds none free waits ``wait_s``.

    ``statement_s`` is what the server allows one statement; the client waits twice as long, and
    then takes the connection for dead. ``again`` says how often, and when, a unit is run again;
    after ``races`` that it lost it is run alone.
    """

    writers: int = 2  # more get in each other's way: each loses more races than it wins
    readers: int = 4
    wait_s: float = 10.0
    connect_s: float = 5.0
    statement_s: float = 10.0
    again: Backoff = field(default_factory=lambda: Backoff(base_s=0.005, cap_s=0.5, max_tries=12))
    races: int = 4


class Fate(Enum):
    """What an error means for the unit that met it."""

    AGAIN = "again"  # run it again on a new snapshot: others were in the way
    ONCE_MORE = "once more"  # a key was taken meanwhile, or the unit is wrong: one look more
    LOST = "lost"  # the connection or the server went away
    OWN = "own"  # the unit's own error


_CONFLICTS: Final = frozenset({"40001", "40P01"})  # serialization failure, deadlock
STANDBY: Final = frozenset({"25006", "55000"})  # it takes no writes: it is one, or became one
_TAKEN: Final = frozenset({"23505", "23P01"})  # under SERIALIZABLE a conflict may show as this
_UNFIT: Final = frozenset(
    {
        "55P03",  # a lock was not to be had
        "57014",  # statement_timeout
        "57P01",  # an administrator ended the connection
        "57P02",  # another backend crashed
        "57P03",  # starting up or shutting down
        "57P05",  # idle for too long
        "58030",  # I/O error
    }
)
_UNFIT_CLASSES: Final = frozenset({"08", "28", "3D", "53"})
"""Connection exceptions; who we are; no such database; something is used up."""


def fate(error: Exception) -> Fate:
    """Say what to do about an error of a unit, of a commit, or of a connection."""
    if isinstance(error, OSError):  # a timeout is one, too
        return Fate.LOST  # there was no connection, or it did not answer
    if not isinstance(error, sa.exc.DBAPIError):
        return Fate.OWN
    state = sqlstate(error)
    if state in _CONFLICTS:
        return Fate.AGAIN
    if state in _TAKEN:
        return Fate.ONCE_MORE
    closed = isinstance(error, sa.exc.InterfaceError) and not state  # so the driver found it
    lost = closed or error.connection_invalidated
    return Fate.LOST if lost or state in _UNFIT or state[:2] in _UNFIT_CLASSES else Fate.OWN


def sqlstate(error: sa.exc.DBAPIError) -> str:
    """Return the five letters of PostgreSQL's errors; empty when it was not the server's."""
    return str(getattr(error.orig, "sqlstate", None) or "")


def said(error: Exception) -> str:
    """Return what an error says, in one line, without the statement."""
    inner = error.orig if isinstance(error, sa.exc.DBAPIError) else error
    text = str(inner).rpartition(">: ")[2] or type(inner).__name__
    return " ".join(text.split())


def require_driver() -> None:
    """Refuse when asyncpg is not there.

    Raises:
        StoreUnavailableError: says what to install.
    """
    if find_spec("asyncpg") is None:
        advice = "PostgreSQL's driver is missing; run: pip install 'upright[postgres]'"
        raise StoreUnavailableError(advice)


def open_engine(server: Server, limits: PoolLimits) -> AsyncEngine:
    """Make the pool; no connection is opened yet. This loads the driver: not for a loop.

    Raises:
        StoreUnavailableError: the driver is not installed.
    """
    require_driver()
    engine = create_async_engine(
        driven(server),
        pool_size=limits.writers + limits.readers,
        max_overflow=0,
        pool_timeout=limits.wait_s,
        connect_args=connect_args(server, limits, "upright"),
    )
    sa.event.listen(engine.sync_engine, "before_cursor_execute", _without_nul, retval=True)
    return engine


def connect_args(server: Server, limits: PoolLimits, name: str) -> dict[str, Any]:
    """Return what each connection is opened with.

    Plans are made anew for each statement: one that was cached while the queue was empty reads
    whole tables once it is long. A password is always given: without one the driver would look
    for it in the environment and in the home folder.
    """
    settings = {
        "application_name": name,
        "timezone": "UTC",
        "plan_cache_mode": "force_custom_plan",
        "statement_timeout": f"{int(limits.statement_s * 1000)}",
        "idle_in_transaction_session_timeout": f"{int(limits.statement_s * 3000)}",
        "tcp_keepalives_idle": "30",
        "tcp_keepalives_interval": "10",
        "tcp_keepalives_count": "3",
    }
    return {
        "password": server.password or "",
        "timeout": limits.connect_s,
        "command_timeout": 2 * limits.statement_s,
        "server_settings": settings,
    }


def _without_nul(
    _connection: object, _cursor: object, statement: str, parameters: object, *_: object
) -> tuple[str, object]:
    """Put U+FFFD for NUL, which PostgreSQL keeps in no text; one payload must not stop intake."""
    return statement, _clean(parameters)


def _clean(value: object) -> object:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, tuple):
        return tuple(_clean(each) for each in value)
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return value
