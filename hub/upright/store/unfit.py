"""Unfit: which of SQLite's errors mean that the database can't be had; others are a unit's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import sqlalchemy as sa

from upright.store.errors import StoreUnavailableError

_UNFIT: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,  # another process has the lock, in spite of the guard
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PROTOCOL,  # the log's lock could not be had
    }
)
_ROOM: Final = "is there room on its disk?"
_YOURS: Final = "the file and its folder must be yours to read and write"
_ADVICE: Final[Mapping[int, str]] = MappingProxyType(
    {
        sqlite3.SQLITE_FULL: _ROOM,
        sqlite3.SQLITE_IOERR: _ROOM,
        sqlite3.SQLITE_CANTOPEN: _YOURS,
        sqlite3.SQLITE_READONLY: _YOURS,
        sqlite3.SQLITE_PERM: _YOURS,
    }
)
_PRIMARY: Final = 0xFF  # what lies above it says more closely which


def unfit(error: Exception) -> StoreUnavailableError | None:
    """Return what a caller is told of an error that is the database's; None for a unit's own."""
    inner = error.orig if isinstance(error, sa.exc.DBAPIError) else None
    code = getattr(inner, "sqlite_errorcode", None)
    if code is None or code & _PRIMARY not in _UNFIT:
        return None
    lost = StoreUnavailableError(said(error))
    lost.__cause__ = error
    return lost


def said(error: Exception) -> str:
    """Return what an error says, without the statement and its values: those are nobody's.

    Where SQLite's words leave a person at a loss, they are followed by what to do.
    """
    inner = error.orig if isinstance(error, sa.exc.DBAPIError) else error
    code = getattr(inner, "sqlite_errorcode", None)
    advice = "" if code is None else _ADVICE.get(code & _PRIMARY, "")
    return f"{inner}; {advice}" if advice else str(inner)
