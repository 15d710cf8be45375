from __future__ import annotations

from typing import Final

import pytest

from upright.api import ActorKind
from upright.core.edit import route
from upright.core.gate import Judgement, Verdict
from upright.core.ids import SessionId
from upright.core.trigger import Disposition

READER: Final = SessionId("se_1")


def judged(verdict: Verdict) -> Judgement:
    return Judgement(verdict=verdict, rule="r", reason="why", version="1")


@pytest.mark.clause("B1.4")
@pytest.mark.parametrize("verdict", list(Verdict))
def test_an_edit_reaches_those_who_have_what_it_changes_and_wakes_nobody(verdict: Verdict) -> None:
    way = route(judged(verdict), ActorKind.MEMBER, Disposition.STARTED, (READER,))
    assert way.disposition is Disposition.JOINED
    assert [(one.session, one.wake) for one in way.deliveries] == [(READER, False)]


@pytest.mark.clause("B1.4")
@pytest.mark.parametrize("verdict", list(Verdict))
def test_an_edit_of_what_is_held_is_held_beside_it(verdict: Verdict) -> None:
    way = route(judged(verdict), ActorKind.STRANGER, Disposition.HELD, ())
    assert (way.disposition, way.deliveries) == (Disposition.HELD, ())


@pytest.mark.clause("B1.4")
@pytest.mark.parametrize("changed", [None, Disposition.IGNORED, Disposition.STARTED])
@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict.EXPLICIT, Disposition.HELD),
        (Verdict.CANDIDATE, Disposition.IGNORED),
        (Verdict.IGNORE, Disposition.IGNORED),
    ],
)
def test_a_request_that_was_added_by_an_edit_is_held_and_the_rest_starts_nothing(
    changed: Disposition | None, verdict: Verdict, expected: Disposition
) -> None:
    way = route(judged(verdict), ActorKind.MEMBER, changed, ())
    assert (way.disposition, way.deliveries) == (expected, ())


@pytest.mark.clause("B1.5")
def test_an_edit_of_our_own_starts_nothing() -> None:
    way = route(judged(Verdict.EXPLICIT), ActorKind.SELF, Disposition.STARTED, (READER,))
    assert (way.disposition, way.deliveries) == (Disposition.IGNORED, ())
