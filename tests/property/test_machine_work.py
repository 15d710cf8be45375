"""Work: triggers, turns, people, deadlines, devices and crashes in any order; nothing is lost.

A chapter dwells on one side of it. Whatever happens, the invariants of ``machine_watch`` hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pytest
import sqlalchemy as sa
from hypothesis import strategies as st

from fixtures.machine_bench import PARTS, Fault, Tally, never_met, play, rarely_met
from fixtures.machine_chapter import chapter_of
from fixtures.machine_model import answers
from fixtures.machine_world import HAPPENS, NUMBER, Story, Work
from fixtures.still_hub import ANN, BOSS, CAL, CI, EVE


# ------------------------------------------------------------------ chapters
def chapter(
    name: str, stories: Sequence[Story], likes: Sequence[str], **weights: int
) -> type[Work]:
    """Make a machine that dwells on something: what it begins with, does, and what happens."""
    table = {event: (weights.get(event, much), given) for event, (much, given) in HAPPENS.items()}
    said = st.lists(answers(*likes), min_size=1, max_size=3)
    table["works"] = (weights.get("works", 8), {"n": NUMBER, "answers": said})
    return chapter_of(Work, name, stories, table)


THREADS_CHAPTER: Final = chapter(
    "Threads",
    [(CI, "wait thread", 1), (ANN, "", 0), (CAL, "wait timer", 1), (EVE, "wait thread", 1)],
    ["wait thread", "wait timer", "complete", "complete", "complete", "complete", "read"],
    works=10,
    hears=8,
    hears_again=2,
    time_passes=8,
    a_device_comes_or_goes=0,
    a_device_tells=0,
)
PEOPLE_CHAPTER: Final = chapter(
    "People",
    [(EVE, "reply", 1), (EVE, "reply", 0), (ANN, "ask", 1), (CI, "ask", 1), (BOSS, "reply", 1)],
    ["ask", "reply"],
    hears_itself=8,
    a_person_answers=6,
    a_person_answers_anything=2,
    a_person_decides=15,
    a_person_speaks=8,
    a_side_step_answers=4,
    a_week_passes=2,
    sends=8,
    a_device_comes_or_goes=0,
    a_device_tells=0,
)
JOBS_CHAPTER: Final = chapter(
    "Jobs",
    [(CI, "run", 0), (ANN, "run", 3), (EVE, "run", 3), (BOSS, "run", 0)],
    ["run", "run", "wait job", "stop"],
    works=14,
    dies=2,
    hears=3,
    a_person_speaks=4,
    a_device_tells=12,
    a_device_comes_or_goes=2,
)
DEATHS_CHAPTER: Final = chapter(
    "Deaths",
    [(CI, "run", 0), (ANN, "run", 0), (BOSS, "run", 3), (EVE, "reply", 1), (CAL, "", 0)],
    ["run", "reply", "wait thread", "complete"],
    works=10,
    will_fail=8,
    dies=6,
    a_device_tells=3,
    sends=3,
)
RACES: Final[Mapping[type[Work], Sequence[str]]] = {
    THREADS_CHAPTER: (
        "a webhook comes twice",
        "a trigger comes before the turn's CallModel",
        "a trigger comes before the turn's RunCall",
        "a deadline fires while its turn runs",
        "a tail falls back to the router",
        "the router's unread tail goes to the worker",
        "wait.matched match",
        "wait.matched stale",
        "wait.expired",
        "a trigger is read again",
    ),
    PEOPLE_CHAPTER: (
        "a reply after a stranger's text is held",
        "a person approves",
        "a person unblocks an item",
        "a person answers too late",
        "an answer comes while its turn runs",
        "an interrupt comes while its turn runs",
        "a side step answers",
    ),
    JOBS_CHAPTER: (
        "a job ends a second time",
        "a job ends that is waited for",
        "a job ends while its call is open",
        "a job ends while nobody leads its session",
    ),
    DEATHS_CHAPTER: (
        *(f"the hub: {fault}" for fault in Fault),
        "the hub dies before CallModel",
        "the hub dies before RunCall",
        "the hub dies while a command is not over",
    ),
}
SELDOM: Final[Mapping[type[Work], Sequence[str]]] = {
    PEOPLE_CHAPTER: ("a person denies", "our own output comes back"),
    JOBS_CHAPTER: ("an interrupt comes while its turn runs",),
}
"""What a chapter meets at least once."""


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("machine", RACES)
def test_nothing_is_lost_and_nothing_sleeps_for_ever(
    connection: sa.Connection, machine: type[Work], part: int, tally: Tally
) -> None:
    met = play(machine, connection, part=part, examples=5, steps=60)
    whole = tally.add(machine.__name__, part, met)
    assert rarely_met(whole, RACES[machine]) == {}
    assert never_met(whole, SELDOM.get(machine, ())) == []
