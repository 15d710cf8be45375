"""Strategy: the legal options, and the one that is taken (B9)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.api import ActorKind
from upright.core.mandate import Trust
from upright.core.strategy import (
    Activity,
    Decider,
    Means,
    Situation,
    Strategy,
    choose,
    legal,
    means,
)

BUSY: Final = Situation(
    kind="comment.created",
    actor=ActorKind.MEMBER,
    trust=Trust.MEMBER,
    urgent=False,
    activity=Activity.RUNNING,
    parallel=True,
)
OPERATOR, SYSTEM = ActorKind.OPERATOR, ActorKind.SYSTEM
SITUATIONS: Final = st.builds(
    Situation,
    kind=st.sampled_from(["operator.interrupt", "operator.question", "agent.interrupt", "x"]),
    actor=st.sampled_from(list(ActorKind)),
    trust=st.sampled_from(list(Trust)),
    urgent=st.booleans(),
    activity=st.sampled_from(list(Activity)),
    parallel=st.booleans(),
)


@pytest.mark.clause("B9.2")
@pytest.mark.parametrize(
    ("kind", "actor", "expected"),
    [
        ("operator.interrupt", OPERATOR, Strategy.CANCEL),
        ("supervisor.instruction", OPERATOR, Strategy.CANCEL),
        ("supervisor.instruction", SYSTEM, Strategy.CANCEL),
        ("agent.interrupt", SYSTEM, Strategy.CANCEL),
        ("operator.message", OPERATOR, Strategy.QUEUE),
        ("operator.answer", OPERATOR, Strategy.QUEUE),
        ("worker.report", SYSTEM, Strategy.QUEUE),
        ("job.finished", SYSTEM, Strategy.QUEUE),
        ("wait.deadline", SYSTEM, Strategy.QUEUE),
        ("ci.failed", ActorKind.BOT, Strategy.QUEUE),
        ("operator.question", OPERATOR, Strategy.PARALLEL),
    ],
)
def test_each_kind_has_its_strategy_while_a_turn_runs(
    kind: str, actor: ActorKind, expected: Strategy
) -> None:
    trust = Trust.OPERATOR if actor in {OPERATOR, SYSTEM} else Trust.STRANGER
    for activity in (Activity.RUNNING, Activity.WORKING):
        seen = replace(BUSY, kind=kind, actor=actor, trust=trust, activity=activity)
        choice = choose(seen)
        assert (choice.verdict, choice.by) == (expected, Decider.RULE)


@pytest.mark.clause("B9.2")
@pytest.mark.parametrize(
    "kind", ["operator.interrupt", "supervisor.instruction", "agent.interrupt"]
)
@pytest.mark.parametrize(
    "actor", [kind for kind in ActorKind if kind not in {ActorKind.OPERATOR, ActorKind.SYSTEM}]
)
def test_a_kind_that_somebody_else_writes_interrupts_nothing(kind: str, actor: ActorKind) -> None:
    assert means(kind, actor) is Means.EXTERNAL
    assert choose(replace(BUSY, kind=kind, actor=actor)).verdict is Strategy.QUEUE


@pytest.mark.clause("B9.2")
@pytest.mark.parametrize("actor", list(ActorKind))
def test_what_configuration_calls_urgent_cancels_whoever_wrote_it(actor: ActorKind) -> None:
    choice = choose(replace(BUSY, actor=actor, trust=Trust.STRANGER, urgent=True))
    assert choice.verdict is Strategy.CANCEL


@pytest.mark.clause("B9.1")
def test_a_session_without_a_turn_has_nothing_to_cancel_and_nothing_to_be_beside() -> None:
    for kind in ("operator.interrupt", "operator.question"):
        seen = replace(BUSY, kind=kind, actor=OPERATOR, activity=Activity.IDLE, urgent=True)
        assert legal(seen) == {Strategy.QUEUE}
        assert choose(seen).verdict is Strategy.QUEUE


@pytest.mark.clause("B9.1")
@pytest.mark.parametrize(
    ("seen", "options"),
    [
        (BUSY, {Strategy.QUEUE, Strategy.IGNORE, Strategy.CANCEL, Strategy.PARALLEL}),
        (replace(BUSY, parallel=False), {Strategy.QUEUE, Strategy.IGNORE, Strategy.CANCEL}),
        (
            replace(BUSY, trust=Trust.STRANGER),
            {Strategy.QUEUE, Strategy.IGNORE, Strategy.CANCEL},
        ),
        (
            replace(BUSY, actor=ActorKind.STRANGER, trust=Trust.STRANGER),
            {Strategy.QUEUE, Strategy.IGNORE},
        ),
        (
            replace(BUSY, actor=OPERATOR, trust=Trust.OPERATOR),
            {Strategy.QUEUE, Strategy.CANCEL, Strategy.PARALLEL},
        ),
        (replace(BUSY, actor=SYSTEM, kind="job.finished"), {Strategy.QUEUE}),
        (replace(BUSY, activity=Activity.IDLE), {Strategy.QUEUE, Strategy.IGNORE}),
    ],
)
def test_the_options_follow_from_who_speaks_and_what_the_session_does(
    seen: Situation, options: set[Strategy]
) -> None:
    assert legal(seen) == options


@pytest.mark.clause("B9.1")
def test_a_question_that_no_side_step_may_answer_is_queued() -> None:
    seen = replace(BUSY, kind="operator.question", actor=OPERATOR, parallel=False)
    assert choose(seen).verdict is Strategy.QUEUE


@pytest.mark.clause("B9.1", "B9.6")
@pytest.mark.case("GH/1911")
def test_legal_advice_is_taken_and_illegal_advice_is_overruled_and_told() -> None:
    taken = choose(BUSY, Strategy.PARALLEL)
    assert (taken.verdict, taken.by, taken.overruled) == (
        Strategy.PARALLEL,
        Decider.ADVISOR,
        None,
    )
    stranger = replace(BUSY, actor=ActorKind.STRANGER, trust=Trust.STRANGER)
    refused = choose(stranger, Strategy.CANCEL)
    assert (refused.verdict, refused.by, refused.overruled) == (
        Strategy.QUEUE,
        Decider.RULE,
        Strategy.CANCEL,
    )


@pytest.mark.clause("B9.1")
def test_no_advice_holds_an_interrupt_back() -> None:
    interrupt = replace(BUSY, kind="operator.interrupt", actor=OPERATOR)
    choice = choose(interrupt, Strategy.QUEUE)
    assert (choice.verdict, choice.by) == (Strategy.CANCEL, Decider.RULE)


@pytest.mark.clause("B9.1")
@given(seen=SITUATIONS, advice=st.none() | st.sampled_from(list(Strategy)))
def test_whatever_is_chosen_is_legal_and_queueing_always_is(
    seen: Situation, advice: Strategy | None
) -> None:
    choice = choose(seen, advice)
    assert choice.verdict in choice.options
    assert Strategy.QUEUE in choice.options
    assert choice.options == legal(seen)
