from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.core.budget import Measure, Used
from upright.core.transcript import Message, Role, ToolCall, unanswered
from upright.core.turn import (
    Action,
    AwaitJobs,
    AwaitSide,
    CallModel,
    CutShort,
    Ending,
    Limits,
    Nudge,
    Rest,
    RunCall,
    TakeInbox,
    View,
    next_action,
    stuck,
)

LIMITS: Final = Limits(max_steps=5, max_same_results=3, max_nudges=1)
SYSTEM: Final = Message(role=Role.SYSTEM, text="rules")
USER: Final = Message(role=Role.USER, text="what came")
SAID: Final = Message(role=Role.ASSISTANT, text="done")
C1: Final = ToolCall(id="c1", name="run", arguments='{"argv":["true"]}')
C2: Final = ToolCall(id="c2", name="run", arguments='{"argv":["false"]}')


def asks(*calls: ToolCall) -> Message:
    return Message(role=Role.ASSISTANT, calls=calls)


def answers(call: ToolCall) -> Message:
    return Message(role=Role.TOOL, text="{}", call_id=call.id)


def view(*messages: Message) -> View:
    return View(
        messages=messages, inbox=0, steps=0, nudges=0, settled=False, started={}, results={}
    )


BOTH_OPEN: Final = view(SYSTEM, USER, asks(C1, C2))
ANSWERED: Final = view(SYSTEM, USER, asks(C1), answers(C1))
SPOKEN: Final = view(SYSTEM, USER, SAID)


# ------------------------------------------------------------------ the table of situations
@pytest.mark.parametrize(
    ("seen", "action"),
    [
        # tool calls
        pytest.param(BOTH_OPEN, RunCall(C1), id="first call"),
        pytest.param(replace(BOTH_OPEN, started={"c1": True}), RunCall(C2), id="second call"),
        pytest.param(
            replace(BOTH_OPEN, started={"c1": True, "c2": True}), AwaitJobs((C1, C2)), id="jobs"
        ),
        pytest.param(
            replace(BOTH_OPEN, started={"c1": True, "c2": False}),
            AwaitJobs((C1, C2)),
            id="jobs that need not be awaited get their placeholder",
        ),
        pytest.param(
            replace(
                view(SYSTEM, USER, asks(C1, C2), answers(C1)), started={"c1": True, "c2": True}
            ),
            AwaitJobs((C2,)),
            id="one job left",
        ),
        pytest.param(view(SYSTEM, USER, asks(C1, C2), answers(C1)), RunCall(C2), id="next call"),
        # the inbox
        pytest.param(replace(view(SYSTEM), inbox=1), TakeInbox(), id="first trigger"),
        pytest.param(replace(SPOKEN, inbox=2), TakeInbox(), id="came while it spoke"),
        pytest.param(replace(ANSWERED, inbox=1), TakeInbox(), id="came while it worked"),
        pytest.param(replace(BOTH_OPEN, inbox=1), RunCall(C1), id="calls before the inbox"),
        # the model
        pytest.param(view(SYSTEM, USER), CallModel(), id="it was spoken to"),
        pytest.param(ANSWERED, CallModel(), id="it has a result"),
        pytest.param(
            replace(view(SYSTEM, USER), settled=True), CallModel(), id="a settled item is spoken to"
        ),
        # the end
        pytest.param(replace(SPOKEN, settled=True), Rest(Ending.REST), id="rest"),
        pytest.param(
            replace(ANSWERED, settled=True, ending=frozenset({"c1"})),
            Rest(Ending.REST),
            id="it waits now",
        ),
        pytest.param(
            replace(ANSWERED, ending=frozenset({"c1"})),
            CallModel(),
            id="a call that should have ended the turn settled nothing",
        ),
        pytest.param(
            replace(ANSWERED, settled=True), CallModel(), id="a router reads what it asked for"
        ),
        pytest.param(
            replace(
                view(SYSTEM, USER, asks(C1), answers(C1), asks(C2), answers(C2)),
                settled=True,
                ending=frozenset({"c1"}),
            ),
            CallModel(),
            id="a wait of an earlier step ends no later one",
        ),
        pytest.param(
            replace(
                view(SYSTEM, USER, asks(C1), answers(C1), USER),
                settled=True,
                ending=frozenset({"c1"}),
            ),
            CallModel(),
            id="a wait is not the end when something came behind it",
        ),
        pytest.param(
            replace(view(SYSTEM, USER), inbox=1, over=True), Rest(Ending.REST), id="it is over"
        ),
        pytest.param(replace(BOTH_OPEN, over=True), RunCall(C1), id="over, with an open call"),
        pytest.param(SPOKEN, Nudge(), id="silence"),
        pytest.param(replace(SPOKEN, nudges=1), Rest(Ending.UNSETTLED), id="silence again"),
        pytest.param(view(SYSTEM), Nudge(), id="woken by nothing"),
        pytest.param(replace(view(), settled=True), Rest(Ending.REST), id="nothing at all"),
        pytest.param(
            replace(view(SYSTEM, USER), steps=5),
            Rest(Ending.TOO_LONG, "5 of 5 steps in one turn"),
            id="out of steps",
        ),
        pytest.param(replace(view(SYSTEM, USER), steps=4), CallModel(), id="the last step"),
        pytest.param(
            replace(SPOKEN, steps=5, settled=True), Rest(Ending.REST), id="rest at the last step"
        ),
        pytest.param(replace(BOTH_OPEN, steps=9), RunCall(C1), id="no call is left open"),
    ],
)
@pytest.mark.clause("B8.1", "B8.2", "B8.4", "B8.7")
def test_what_is_stored_decides_what_comes_next(seen: View, action: Action) -> None:
    assert next_action(seen, LIMITS) == action


# ------------------------------------------------------------------ no progress
def repeated(times: int, *, result: str = "same") -> View:
    calls = [ToolCall(id=f"c{n}", name="run", arguments='{"argv":["x"]}') for n in range(times)]
    said: list[Message] = [SYSTEM, USER]
    for call in calls:
        said += [asks(call), answers(call)]
    return replace(view(*said), results={call.id: result for call in calls})


@pytest.mark.clause("B10.4", "B13.1")
def test_the_same_call_with_the_same_result_three_times_in_a_row_ends_the_turn() -> None:
    assert next_action(repeated(2), LIMITS) == CallModel()
    assert next_action(repeated(3), LIMITS) == Rest(Ending.NO_PROGRESS)
    assert next_action(repeated(4), LIMITS) == Rest(Ending.NO_PROGRESS)


@pytest.mark.clause("B10.4")
def test_another_result_tool_or_argument_in_between_is_progress() -> None:
    seen = repeated(3)
    assert not stuck(replace(seen, results={**seen.results, "c1": "other"}), 3)
    for changed in (
        ToolCall(id="c1", name="read", arguments='{"argv":["x"]}'),
        ToolCall(id="c1", name="run", arguments='{"argv":["y"]}'),
    ):
        said = [*seen.messages[:4], asks(changed), *seen.messages[5:]]
        assert not stuck(replace(seen, messages=said), 3)


@pytest.mark.clause("B10.4")
def test_only_the_last_calls_count() -> None:
    seen = repeated(4)
    assert stuck(replace(seen, results={**seen.results, "c0": "other"}), 3)
    assert not stuck(replace(seen, results={**seen.results, "c3": "other"}), 3)


def test_a_call_without_a_result_yet_does_not_count() -> None:
    seen = repeated(3)
    assert not stuck(replace(seen, results={"c0": "same", "c1": "same"}), 3)


@pytest.mark.clause("B10.4")
def test_something_new_that_came_ends_the_row() -> None:
    seen = repeated(3)
    assert next_action(replace(seen, messages=[*seen.messages, USER]), LIMITS) == CallModel()
    assert next_action(replace(seen, inbox=1), LIMITS) == TakeInbox()


def test_nothing_called_is_not_stuck() -> None:
    assert not stuck(view(SYSTEM, USER), 3)


def test_the_default_limits_are_bounds() -> None:
    assert (Limits().max_steps, Limits().max_same_results, Limits().max_nudges) == (60, 3, 1)


# ------------------------------------------------------------------ properties
@st.composite
def transcripts(draw: st.DrawFn) -> list[Message]:
    """Draw a transcript that may have been written: only the last calls may be unanswered."""
    said = [SYSTEM]
    for turn in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["user", "said", "calls"]))
        if kind == "user":
            said.append(USER)
        elif kind == "said":
            said.append(SAID)
        else:
            calls = [
                ToolCall(id=f"t{turn}c{n}", name="run", arguments="{}")
                for n in range(draw(st.integers(1, 3)))
            ]
            said += [asks(*calls), *(answers(call) for call in calls)]
    if draw(st.booleans()):
        calls = [ToolCall(id=f"o{n}", name="run", arguments="{}") for n in range(3)]
        done = draw(st.lists(st.sampled_from(calls), unique=True))
        said += [asks(*calls), *(answers(call) for call in done)]
    return said


@st.composite
def views(draw: st.DrawFn) -> View:
    messages = draw(transcripts())
    ids = [call.id for message in messages for call in message.calls]
    some = st.sets(st.sampled_from(ids)) if ids else st.just(set[str]())
    return View(
        messages=messages,
        inbox=draw(st.integers(0, 2)),
        steps=draw(st.integers(0, 6)),
        nudges=draw(st.integers(0, 2)),
        settled=draw(st.booleans()),
        ending=frozenset(draw(some)),
        over=draw(st.booleans()),
        started={one: draw(st.booleans()) for one in draw(some)},
        results={one: draw(st.sampled_from("ab")) for one in draw(some)},
    )


def open_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    return unanswered(messages)


@pytest.mark.clause("B8.2")
@given(seen=views())
def test_with_an_open_call_the_model_is_not_called_and_the_turn_does_not_rest(seen: View) -> None:
    action = next_action(seen, LIMITS)
    assert isinstance(action, RunCall | AwaitJobs) is bool(open_calls(seen.messages))


@pytest.mark.clause("B8.2")
@given(seen=views())
def test_every_open_call_is_begun_before_any_job_is_awaited(seen: View) -> None:
    action = next_action(seen, LIMITS)
    if isinstance(action, AwaitJobs):
        assert action.calls == open_calls(seen.messages)
        assert all(call.id in seen.started for call in action.calls)
    if isinstance(action, RunCall):
        assert action.call in open_calls(seen.messages)
        assert action.call.id not in seen.started


@pytest.mark.clause("B8.4", "B9.4")
@given(seen=views())
def test_the_inbox_is_taken_at_safe_points_only_and_never_slept_on(seen: View) -> None:
    safe = not open_calls(seen.messages) and not seen.over
    assert (next_action(seen, LIMITS) == TakeInbox()) is (safe and seen.inbox > 0)


@pytest.mark.clause("B8.7")
@given(seen=views())
def test_a_turn_that_would_leave_its_item_unsettled_never_simply_rests(seen: View) -> None:
    if next_action(seen, LIMITS) == Rest(Ending.REST):
        assert seen.settled or seen.over


@pytest.mark.clause("B6.6", "B11.6")
@given(seen=views())
def test_when_the_item_is_over_no_model_is_called_and_nothing_more_is_taken(seen: View) -> None:
    action = next_action(replace(seen, over=True), LIMITS)
    assert action == Rest(Ending.REST) or isinstance(action, RunCall | AwaitJobs)


@pytest.mark.clause("B13.1")
@given(seen=views())
def test_the_model_is_never_called_beyond_the_limit(seen: View) -> None:
    if next_action(seen, LIMITS) == CallModel():
        assert seen.steps < LIMITS.max_steps


@given(seen=views())
def test_a_turn_nudges_no_more_often_than_it_may(seen: View) -> None:
    if next_action(seen, LIMITS) == Nudge():
        assert seen.nudges < LIMITS.max_nudges
        assert not seen.settled


# ------------------------------------------------------------------ what comes meanwhile (B9)
@pytest.mark.clause("B9.3")
@pytest.mark.parametrize("started", [{}, {"c1": True}, {"c1": True, "c2": True}])
def test_what_is_urgent_cuts_every_open_call_short(started: dict[str, bool]) -> None:
    seen = replace(BOTH_OPEN, started=started, urgent=True, inbox=1)
    assert next_action(seen, LIMITS) == CutShort((C1, C2))


@pytest.mark.clause("B9.3")
def test_what_is_urgent_at_a_safe_point_is_taken_like_the_rest() -> None:
    assert next_action(replace(ANSWERED, urgent=True, inbox=2), LIMITS) == TakeInbox()


@pytest.mark.clause("B9.5")
def test_an_aside_is_taken_when_the_model_is_asked_anyway_and_is_no_reason_to_ask_it() -> None:
    assert next_action(replace(ANSWERED, asides=2), LIMITS) == TakeInbox()
    at_rest = replace(SPOKEN, asides=2, settled=True)
    assert next_action(at_rest, LIMITS) == Rest(Ending.REST)


@pytest.mark.clause("B9.5")
def test_a_turn_does_not_rest_while_a_side_step_answers() -> None:
    at_rest = replace(SPOKEN, beside=1, settled=True)
    assert next_action(at_rest, LIMITS) == AwaitSide()
    assert next_action(replace(at_rest, inbox=1), LIMITS) == TakeInbox()
    assert next_action(replace(ANSWERED, beside=1), LIMITS) == CallModel()


# ------------------------------------------------------------------ what one turn may use
@pytest.mark.clause("B13.1")
@pytest.mark.parametrize("measure", list(Measure))
def test_a_turn_that_has_used_up_a_measure_ends_with_the_reason(measure: Measure) -> None:
    limits = replace(LIMITS, caps={measure: 7})
    under, full = (
        next_action(replace(view(SYSTEM, USER), used=Used(**{measure.value: n})), limits)
        for n in (6, 7)
    )
    assert under == CallModel()
    assert isinstance(full, Rest)
    assert full.ending is Ending.TOO_LONG
    assert "in one turn" in full.reason


@pytest.mark.clause("B13.1")
def test_a_bound_of_a_turn_leaves_no_call_unanswered() -> None:
    limits = replace(LIMITS, caps={Measure.TOKENS: 1})
    spent = replace(view(SYSTEM, USER, asks(C1)), used=Used(tokens=9))
    assert next_action(spent, limits) == RunCall(C1)
