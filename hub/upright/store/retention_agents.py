"""Retention of agents: what was superseded, and versions of files that a newer one has replaced."""

from __future__ import annotations

from upright.store import homes as home_files
from upright.store import memories
from upright.store.retention import ROWS, START, Piece
from upright.store.unit import Unit


def memory(u: Unit, before_ms: int) -> Piece:
    """Delete some memories that were superseded before a time; what is remembered stays."""
    return _piece(memories.prune(u.c, before_ms, ROWS))


def homes(u: Unit, before_ms: int) -> Piece:
    """Delete some versions of files that were replaced before a time; the newest stays."""
    return _piece(home_files.prune(u.c, before_ms, ROWS))


def _piece(rows: int) -> Piece:
    return Piece(rows=rows, place=START if rows == ROWS else None)
