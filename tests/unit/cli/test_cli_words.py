"""`session ask` waits for its answer: a side step's, or of the turn that took the question."""

from __future__ import annotations

import json

import pytest
from sqlmodel import SQLModel

from fixtures.cli_hub import Served, Terminal
from fixtures.store_rows import entry
from upright.core.transcript import Message, Role
from upright.store import tables_world

ASK = ("session", "ask", "se_fix", "How far are you?")


def event(stop: str, **data: object) -> SQLModel:
    """Make an event of the turn that runs when the question comes."""
    return tables_world.Event(
        at_ms=500,
        stop=stop,
        trigger_id=None if stop == "turn.ended" else "tr_asked",
        session_id="se_fix",
        turn_id="tu_fix",
        data_json=json.dumps(data),
    )


TOOK = event("turn.took", entry=4)
ENDED = event("turn.ended", ending="rest")


@pytest.mark.clause("B9.5")
def test_an_answer_that_a_side_step_gave_is_printed(served: Served, upright: Terminal) -> None:
    served.behind.then = [event("side.answered", answer="Half way."), TOOK]
    typed = upright(*ASK)
    assert (typed.code, typed.out.strip()) == (0, "Half way.")
    assert served.behind.asked == [("say", "se_fix", "How far are you?", "operator.question")]


@pytest.mark.clause("B9.5")
def test_what_the_turn_says_that_took_the_question_is_printed(
    served: Served, upright: Terminal
) -> None:
    taken = entry("se_fix", 4, "tu_fix", Message(role=Role.USER, text="How far are you?"))
    said = entry("se_fix", 5, "tu_fix", Message(role=Role.ASSISTANT, text="Nearly there."))
    served.behind.then = [taken, TOOK, said, ENDED]
    typed = upright(*ASK, "--json")
    assert typed.code == 0
    found = json.loads(typed.out)
    assert (found["answer"], found["ran_in_parallel"]) == ("Nearly there.", False)


def test_a_turn_that_ends_without_a_word_is_6(served: Served, upright: Terminal) -> None:
    taken = entry("se_fix", 4, "tu_fix", Message(role=Role.USER, text="How far are you?"))
    served.behind.then = [taken, TOOK, ENDED]
    typed = upright(*ASK)
    assert typed.code == 6
    assert "said nothing to it" in typed.err
