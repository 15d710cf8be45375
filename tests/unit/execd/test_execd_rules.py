from __future__ import annotations

import pytest

from upright_execd.confinement import caps
from upright_execd.rules import Place, Rule, Verdict, decide
from upright_execd.settings import RESERVED, Mode
from upright_wire.spec import Confinement

TABLE = {
    (Mode.OFF, Place.WORKSPACE): (Verdict.DENY, Rule.MODE_OFF),
    (Mode.OFF, Place.ELSEWHERE): (Verdict.DENY, Rule.MODE_OFF),
    (Mode.ASK, Place.WORKSPACE): (Verdict.ASK, Rule.MODE_ASK),
    (Mode.ASK, Place.ELSEWHERE): (Verdict.ASK, Rule.OUTSIDE_WORKSPACES),
    (Mode.ALLOW, Place.WORKSPACE): (Verdict.RUN, Rule.WORKSPACE_ALLOWED),
    (Mode.ALLOW, Place.ELSEWHERE): (Verdict.ASK, Rule.OUTSIDE_WORKSPACES),
}


@pytest.mark.parametrize("mode", set(Mode) - RESERVED)
@pytest.mark.parametrize("place", Place)
def test_mode_and_place_decide(mode: Mode, place: Place) -> None:
    decision = decide(mode, place, Confinement.NONE, set(Confinement))
    assert (decision.verdict, decision.rule) == TABLE[mode, place]


@pytest.mark.parametrize("mode", sorted(RESERVED))
def test_a_mode_without_a_meaning_denies(mode: Mode) -> None:
    decision = decide(mode, Place.WORKSPACE, Confinement.NONE, set(Confinement))
    assert (decision.verdict, decision.rule) == (Verdict.DENY, Rule.MODE_RESERVED)


@pytest.mark.parametrize("mode", set(Mode) - {Mode.OFF})
@pytest.mark.parametrize("profile", Confinement)
def test_a_profile_that_cannot_be_enforced_is_denied_in_every_mode(
    mode: Mode, profile: Confinement
) -> None:
    decision = decide(mode, Place.WORKSPACE, profile, set(Confinement) - {profile})
    assert (decision.verdict, decision.rule) == (Verdict.DENY, Rule.CONFINEMENT_UNAVAILABLE)


def test_only_what_can_be_enforced_is_offered() -> None:
    assert caps({Confinement.NONE}) == ("exec", "stdin", "confinement.none")
