from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pytest

from upright.core.errors import IllegalMoveError
from upright.core.machine import move


class Door(StrEnum):
    OPEN = "open"
    SHUT = "shut"


@dataclass(frozen=True, slots=True)
class Pushed:
    force_n: int = 1


@dataclass(frozen=True, slots=True)
class Locked:
    pass


TABLE: Final[Mapping[tuple[Door, type], Door]] = {(Door.OPEN, Pushed): Door.SHUT}


def test_a_move_of_the_table_leads_where_it_says() -> None:
    assert move(TABLE, Door.OPEN, Pushed()) is Door.SHUT


def test_what_an_event_carries_does_not_choose_the_move() -> None:
    assert move(TABLE, Door.OPEN, Pushed(force_n=99)) is Door.SHUT


@pytest.mark.clause("B11.1")
@pytest.mark.parametrize(
    ("state", "event"), [(Door.SHUT, Pushed()), (Door.OPEN, Locked())], ids=["state", "event"]
)
def test_a_move_that_is_not_in_the_table_is_refused_by_name(state: Door, event: object) -> None:
    with pytest.raises(IllegalMoveError) as refused:
        move(TABLE, state, event)
    assert refused.value.data == {"state": state.value, "event": type(event).__name__}
