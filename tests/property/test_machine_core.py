"""The whole core: everything at once, with crashes between any two commits; ten invariants hold.

A chapter dwells on one side of it, as in ``test_machine_work``; each is a run of the same machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pytest
import sqlalchemy as sa
from hypothesis import strategies as st

from fixtures.machine_bench import PARTS, Fault, Tally, never_met, play, rarely_met
from fixtures.machine_chapter import chapter_of
from fixtures.machine_core import MORE, Core
from fixtures.machine_model import MUCH, answers
from fixtures.machine_world import NUMBER, Story
from fixtures.still_hub import ANN, BOSS, CAL, CI, EVE

FATAL: Final = {"will_fail": 6, "dies": 2}


def chapter(
    name: str, stories: Sequence[Story], likes: Sequence[str], **weights: int
) -> type[Core]:
    """Make a machine that dwells on something; the hub may die at any of its commits."""
    often = {**FATAL, **weights}
    table = {event: (often.get(event, much), given) for event, (much, given) in MORE.items()}
    said = st.lists(answers(*likes, routes=MUCH), min_size=1, max_size=4)
    table["works"] = (often.get("works", 10), {"n": NUMBER, "answers": said})
    return chapter_of(Core, name, stories, table)


STORMS: Final = chapter(
    "Storms",
    [(CI, "wait thread", 1), (ANN, "", 0), (CAL, "wait timer", 1)],
    ["wait thread", "wait timer", "complete"],
    a_storm_comes=8,
    a_moment_passes=8,
    hears=6,
    hears_an_edit=8,
    hears_late=4,
    lists=4,
    rules_change=3,
    a_device_comes_or_goes=0,
    a_device_tells=0,
)
ROUTES: Final = chapter(
    "Routes",
    [(CI, "wait thread", 1), (ANN, "hand_back", 1), (CAL, "hand_back", 1)],
    ["hand_back", "hand_back", "complete", "complete", "report"],
    works=18,
    hears=10,
    somebody_follows=8,
    somebody_leaves=6,
    passes_change=4,
    hears_an_edit=3,
    a_device_comes_or_goes=0,
    a_device_tells=0,
)
FAMILIES: Final = chapter(
    "Families",
    [(CI, "spawn_child", 1), (ANN, "spawn_child", 0), (BOSS, "run", 2)],
    ["spawn_child", "yield_to", "complete", "complete", "run", "watch", "watch", "wait job"],
    works=18,
    an_item_is_cancelled=4,
    a_session_is_stopped=3,
    an_item_is_unblocked=4,
    a_wait_is_ended=6,
    a_person_decides=4,
    a_week_passes=4,
    a_device_tells=10,
)
EFFECTS: Final = chapter(
    "Effects",
    [(EVE, "reply", 1), (ANN, "reply", 0), (BOSS, "reply progress", 1), (CI, "reply named", 1)],
    ["reply", "reply", "reply progress", "reply named"],
    sends=12,
    an_effect_is_retried=5,
    an_effect_is_discarded=3,
    a_person_decides=6,
    a_person_speaks=6,
    a_side_step_answers=3,
    old_things_go=4,
    time_passes=4,
    the_clock_jumps=3,
    hears_itself=4,
    a_device_comes_or_goes=0,
    a_device_tells=0,
)
DIES: Final = (*(f"the hub: {fault}" for fault in Fault),)
RACES: Final[Mapping[type[Core], Sequence[str]]] = {
    STORMS: (
        "a trigger is folded",
        "an edit comes",
        "triggers come in another order",
        "a listing brings what is known",
        "the rules change",
        *DIES,
    ),
    ROUTES: (
        "a trigger is handed back",
        "a worker follows",
        "a worker leaves",
        "a tail goes back when its reader leaves",
        *DIES,
    ),
    FAMILIES: (
        "an item is cancelled",
        "a session is stopped",
        "a person ends a wait",
        "a turn loses its session",
        "a person comes too late",
        *DIES,
    ),
    EFFECTS: (
        "an effect is retried",
        "an effect is discarded",
        "old things go",
        "the clock jumps ahead",
        "the clock jumps back",
        *DIES,
    ),
}
SELDOM: Final[Mapping[type[Core], Sequence[str]]] = {
    STORMS: ("an edit goes to who has what it changes",),
    ROUTES: (
        "nothing is passed through",
        "a bot is heard by the router, too",
        "a trigger is forwarded",
        "a trigger that nobody takes goes to a person",
        "an item follows one that is over",
    ),
    FAMILIES: (
        "an item is cancelled while its turn runs",
        "an item is unblocked",
        "a parent hears of its child's end",
    ),
    EFFECTS: (),
}
"""What a chapter meets at least once."""


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("machine", RACES)
def test_the_whole_core_keeps_all_ten_invariants(
    connection: sa.Connection, machine: type[Core], part: int, tally: Tally
) -> None:
    met = play(machine, connection, part=part, examples=4, steps=60)
    whole = tally.add(machine.__name__, part, met)
    assert rarely_met(whole, RACES[machine]) == {}
    assert never_met(whole, SELDOM[machine]) == []
