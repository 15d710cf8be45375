"""Machines: how a table of legal moves is read; every other move is refused by one typed error."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from upright.core.errors import IllegalMoveError

S = TypeVar("S", bound=StrEnum)


def move(table: Mapping[tuple[S, type], S], state: S, event: object) -> S:
    """Return the state that *event* leads to.

    Raises:
        IllegalMoveError: the table has no such move.
    """
    following = table.get((state, type(event)))
    if following is None:
        raise IllegalMoveError(state=state.value, event=type(event).__name__)
    return following
