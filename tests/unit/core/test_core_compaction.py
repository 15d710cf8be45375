"""Compaction: what begins a generation, what it keeps, and how far it is trusted (B5.5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from upright.core.compaction import (
    LEAST_MESSAGES,
    MAX_DECISIONS,
    SUMMARY_CAP_BYTES,
    ContextBounds,
    Past,
    Pins,
    call_id,
    checked,
    decisions,
    due,
    fresh,
    ids_in,
    known_ids,
    prompt_key,
    tail,
)
from upright.core.mandate import Trust
from upright.core.transcript import Message, Role, ToolCall

TRIGGER, WORK, WAIT, MADE_UP = (
    f"{short}_" + digit * 26 for short, digit in zip(("tr", "wk", "wt", "wk"), "1239", strict=True)
)
SYSTEM = Message(role=Role.SYSTEM, text="You are the router.")


def user(text: str) -> Message:
    return Message(role=Role.USER, text=text)


def said(text: str = "Done.") -> Message:
    return Message(role=Role.ASSISTANT, text=text)


def called(tool: str, arguments: str, answer: str, call: str = "c") -> list[Message]:
    return [
        Message(role=Role.ASSISTANT, calls=(ToolCall(id=call, name=tool, arguments=arguments),)),
        Message(role=Role.TOOL, text=answer, call_id=call),
    ]


SPAWNED = called("spawn", f'{{"trigger":"{TRIGGER}"}}', f'{{"work":"{WORK}"}}')
STORY = [SYSTEM, user(f"[1 of 1] trigger {TRIGGER}"), *SPAWNED, said(), user("more"), said()]


def past(*messages: Message, taint: Trust = Trust.MEMBER, is_one_thing: bool = False) -> Past:
    return Past(
        session="se_" + "5" * 26,
        generation=0,
        taint=taint,
        at="2026-06-01T10:00:00+00:00",
        is_one_thing=is_one_thing,
        messages=messages or tuple(STORY),
    )


def body(card: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(card.split("\n")[1])
    return found


# ------------------------------------------------------------------ when
@pytest.mark.clause("B5.5")
def test_a_prompt_over_its_bound_is_compacted_and_one_at_it_is_not() -> None:
    assert due(STORY, 101, 100)
    assert not due(STORY, 100, 100)
    assert not due(STORY, 10**9, 0)


def test_a_generation_that_has_just_begun_is_left_as_it_is() -> None:
    assert not due(STORY[: LEAST_MESSAGES - 1], 101, 100)
    assert due([*STORY[: LEAST_MESSAGES - 1], said()], 101, 100)


def test_an_open_call_is_waited_for() -> None:
    assert not due(
        [
            *STORY,
            Message(role=Role.ASSISTANT, calls=(ToolCall(id="d", name="run", arguments="{}"),)),
        ],
        101,
        100,
    )


def test_what_is_not_answered_yet_is_repeated() -> None:
    assert tail([*STORY, user("a"), user("b")]) == (user("a"), user("b"))
    assert tail(STORY) == ()
    assert tail([user("a")]) == ()
    assert not due([*STORY[:4], user("a"), user("b")], 101, 100)


def test_each_kind_of_agent_has_its_bound() -> None:
    bounds = ContextBounds(router=1, worker=2)
    assert (bounds.of("router"), bounds.of("worker")) == (1, 2)


@pytest.mark.clause("B8.1", "B8.2")
def test_a_generation_has_its_own_conversation_and_its_own_calls() -> None:
    assert (call_id("c1", 0), call_id("c1", 2)) == ("c1", "g2_c1")
    assert (prompt_key("se", 0), prompt_key("se", 2)) == ("se", "se.2")


# ------------------------------------------------------------------ what
def test_an_id_is_found_once_and_whole() -> None:
    assert ids_in(f"{WORK}, {TRIGGER} and {WORK}; not {WORK}x nor wk_short") == (WORK, TRIGGER)


@pytest.mark.clause("B5.5")
def test_an_id_that_the_model_made_up_is_dropped() -> None:
    known = known_ids(STORY)
    assert known == {TRIGGER, WORK}
    assert checked(f"{WORK} came of {MADE_UP}.", known) == (f"{WORK} came of .", (MADE_UP,))


def test_an_id_that_a_refusal_repeats_is_no_news() -> None:
    refused = called("read", f'{{"id":"{MADE_UP}"}}', f'{{"error":"there is no {MADE_UP}"}}')
    assert MADE_UP not in known_ids(refused)


@pytest.mark.clause("B5.5")
def test_a_decision_is_a_call_that_worked_with_the_ids_it_is_about() -> None:
    (made,) = decisions(STORY)
    assert made.plain() == {"did": "spawn", "ids": [TRIGGER, WORK]}


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        ("read", f'{{"id":"{WORK}"}}'),  # looks
        ("spawn", f'{{"error":"no","work":"{WORK}"}}'),  # was refused
        ("spawn", "no JSON"),
        ("spawn", "[1]"),
        ("plan", '{"plan":2}'),  # names nothing
    ],
)
def test_what_changed_nothing_is_no_decision(tool: str, answer: str) -> None:
    assert decisions(called(tool, "{}", answer)) == ()


def test_a_call_without_an_answer_decided_nothing() -> None:
    assert decisions([SPAWNED[0]]) == ()


def test_an_earlier_cards_decisions_are_kept_and_their_number_is_bounded() -> None:
    card = user(fresh(past(), Pins(), "").card)
    later = [SYSTEM, card, *called("cancel", f'{{"work":"{WORK}"}}', "{}", "d")]
    assert [one.tool for one in decisions(later)] == ["spawn", "cancel"]
    many = [m for n in range(MAX_DECISIONS) for m in called("x", f'"{WORK}"', "{}", f"{n}")]
    assert len(decisions([*later, *many])) == MAX_DECISIONS
    assert decisions([SYSTEM, said(card.text)]) == ()


@pytest.mark.case("OC/17727")
@pytest.mark.clause("B5.5")
def test_what_is_pinned_stands_on_the_card_whatever_the_summary_says() -> None:
    pins = Pins(
        facts={"open_work": [{"id": WORK}]}, words={"open_waits": [{"id": WAIT, "why": "<b>CI"}]}
    )
    made = fresh(past(), pins, f"Nothing of note, but {WAIT} and {MADE_UP}.")
    told = body(made.card)
    assert (told["open_work"], told["open_waits"]) == (
        [{"id": WORK}],
        [{"id": WAIT, "why": "<b>CI"}],
    )
    assert "<b>" not in made.card
    assert WAIT in told["summary"]
    assert MADE_UP not in made.card
    assert made.invented == (MADE_UP,)
    assert told["earlier"] == f"read('{told['session']}', part='generation:0')"
    assert (told["generation"], told["as_of"]) == (1, "2026-06-01T10:00:00+00:00")


def test_a_long_summary_is_cut_and_says_where_the_rest_is() -> None:
    told = body(fresh(past(), Pins(), "ä" * SUMMARY_CAP_BYTES).card)
    assert len(told["summary"].encode()) <= SUMMARY_CAP_BYTES
    assert "summary:0" in told["summary"]


def test_without_a_summary_the_card_stands_alone() -> None:
    made = fresh(past(), Pins(), "")
    assert "summary" not in body(made.card)
    assert not made.inline


# ------------------------------------------------------------------ trust
@pytest.mark.clause("B5.5", "B14.2")
def test_what_a_tainted_router_wrote_is_not_on_the_card_that_is_trusted() -> None:
    made = fresh(past(taint=Trust.STRANGER), Pins(), "Grant all, said Eve.")
    assert made.taint is Trust.OPERATOR
    assert "Eve" not in made.card
    assert "summary:0" in body(made.card)["summary"]
    assert "stranger" in body(made.card)["summary"]
    assert not made.inline


@pytest.mark.clause("B14.2")
@pytest.mark.parametrize("taint", [Trust.MEMBER, Trust.OPERATOR])
def test_a_summary_of_our_own_words_is_on_the_card_with_their_trust(taint: Trust) -> None:
    made = fresh(past(taint=taint), Pins(), "Ann wants it green.")
    assert (made.taint, made.inline) == (taint, True)


@pytest.mark.clause("B14.2")
def test_a_question_that_was_asked_after_a_strangers_words_keeps_the_taint() -> None:
    pins = Pins(words={"open_questions": ["?"]}, trust=Trust.STRANGER)
    made = fresh(past(taint=Trust.STRANGER), pins, "Eve asks.")
    assert (made.taint, made.inline) == (Trust.STRANGER, True)


@pytest.mark.clause("B14.2")
@pytest.mark.parametrize("summary", ["Eve reports a crash.", ""])
def test_a_workers_taint_never_rises(summary: str) -> None:
    made = fresh(past(taint=Trust.STRANGER, is_one_thing=True), Pins(), summary)
    assert (made.taint, made.inline) == (Trust.STRANGER, bool(summary))


@pytest.mark.clause("B14.2")
def test_what_is_repeated_keeps_the_taint() -> None:
    made = fresh(past(*STORY, user("Eve says"), taint=Trust.STRANGER), Pins(), "Summary.")
    assert made.taint is Trust.STRANGER
