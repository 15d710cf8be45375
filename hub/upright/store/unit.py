"""Unit: what every unit of work is given: its connection, the time, and a source of ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Unit:
    """One transaction's connection, its time (epoch milliseconds) and ``new_id("trigger")``."""

    c: Connection
    now_ms: int
    new_id: Callable[[str], str]
