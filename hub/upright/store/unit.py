"""Unit: what every unit of work is given: its connection, the time, and a source of ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import sqlalchemy as sa

from upright.core.terms import DEFAULT_TERMS, Terms

T = TypeVar("T")
Connection = sa.Connection  # whoever runs a query names the type here, and speaks no SQL


@dataclass(frozen=True, slots=True)
class Unit:
    """One transaction's connection, its time (epoch milliseconds) and ``new_id("trigger")``.

    ``terms`` are the configured deadlines and lives. ``by`` is the person that it is done for.
    """

    c: Connection
    now_ms: int
    new_id: Callable[[str], str]
    terms: Terms = DEFAULT_TERMS
    by: str = "operator"

    def attempt(self, part: Callable[[], T]) -> T:
        """Run *part*; when it raises, what it wrote is taken back, and nothing else."""
        with self.c.begin_nested():
            return part()
