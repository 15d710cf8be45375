from __future__ import annotations

import pytest

from upright_execd.confinement import caps
from upright_execd.rules import TABLE, Hold, Place, Rule, Verdict, decide
from upright_execd.settings import Mode
from upright_wire.spec import Confinement

ALL = set(Confinement)
IN, OUT = Place.WORKSPACE, Place.ELSEWHERE
FIRMNESS = [Verdict.DENY, Verdict.ASK, Verdict.RUN]


@pytest.mark.clause("E8.1")
@pytest.mark.parametrize(
    ("where", "profile", "said"),
    [
        ((Mode.OFF, IN), Confinement.READ_ONLY, (Verdict.DENY, Rule.MODE_OFF)),
        ((Mode.READ_ONLY, IN), Confinement.READ_ONLY, (Verdict.RUN, Rule.WORKSPACE_CONFINED)),
        ((Mode.READ_ONLY, IN), Confinement.WORKSPACE, (Verdict.DENY, Rule.MODE_READ_ONLY)),
        ((Mode.READ_ONLY, OUT), Confinement.READ_ONLY, (Verdict.DENY, Rule.MODE_READ_ONLY)),
        ((Mode.ASK, IN), Confinement.WORKSPACE, (Verdict.RUN, Rule.WORKSPACE_CONFINED)),
        ((Mode.ASK, IN), Confinement.NONE, (Verdict.ASK, Rule.UNCONFINED)),
        ((Mode.ASK, OUT), Confinement.READ_ONLY, (Verdict.ASK, Rule.OUTSIDE_WORKSPACES)),
        ((Mode.ALLOW, IN), Confinement.NONE, (Verdict.RUN, Rule.WORKSPACE_ALLOWED)),
        ((Mode.ALLOW, OUT), Confinement.NONE, (Verdict.ASK, Rule.OUTSIDE_WORKSPACES)),
        ((Mode.FULL, OUT), Confinement.NONE, (Verdict.RUN, Rule.MODE_FULL)),
    ],
)
def test_mode_place_and_confinement_decide(
    where: tuple[Mode, Place], profile: Confinement, said: tuple[Verdict, Rule]
) -> None:
    decision = decide(*where, profile, ALL)
    assert (decision.verdict, decision.rule) == said


@pytest.mark.clause("E8.1")
def test_the_table_is_whole() -> None:
    assert set(TABLE) == {(m, p, h) for m in Mode for p in Place for h in Hold}


@pytest.mark.clause("E8.1")
@pytest.mark.parametrize("place", Place)
@pytest.mark.parametrize("hold", Hold)
def test_the_modes_are_a_ratchet(place: Place, hold: Hold) -> None:
    firm = [FIRMNESS.index(TABLE[mode, place, hold].verdict) for mode in Mode]
    assert firm == sorted(firm)


@pytest.mark.clause("E8.6")
@pytest.mark.parametrize("mode", set(Mode) - {Mode.OFF})
@pytest.mark.parametrize("profile", Confinement)
def test_a_profile_that_cannot_be_enforced_is_denied_in_every_mode(
    mode: Mode, profile: Confinement
) -> None:
    decision = decide(mode, Place.WORKSPACE, profile, ALL - {profile}, is_allowed=True)
    assert (decision.verdict, decision.rule) == (Verdict.DENY, Rule.CONFINEMENT_UNAVAILABLE)


@pytest.mark.clause("E8.3")
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("place", Place)
@pytest.mark.parametrize("profile", Confinement)
def test_a_rule_of_the_owner_answers_a_question_and_never_lifts_a_denial(
    mode: Mode, place: Place, profile: Confinement
) -> None:
    before = decide(mode, place, profile, ALL)
    after = decide(mode, place, profile, ALL, is_allowed=True)
    if before.verdict is Verdict.ASK:
        assert (after.verdict, after.rule) == (Verdict.RUN, Rule.ARGV_ALLOWED)
    else:
        assert after == before


@pytest.mark.clause("E8.1", "E8.5")
@pytest.mark.parametrize(
    ("mode", "profile", "said"),
    [
        (Mode.OFF, Confinement.WORKSPACE, (Verdict.DENY, Rule.MODE_OFF)),
        (Mode.READ_ONLY, Confinement.WORKSPACE, (Verdict.DENY, Rule.MODE_READ_ONLY)),
        (Mode.ASK, Confinement.WORKSPACE, (Verdict.ASK, Rule.SECRETS)),
        (Mode.ASK, Confinement.NONE, (Verdict.ASK, Rule.UNCONFINED)),
        (Mode.ALLOW, Confinement.WORKSPACE, (Verdict.RUN, Rule.WORKSPACE_ALLOWED)),
        (Mode.FULL, Confinement.WORKSPACE_NO_NETWORK, (Verdict.DENY, Rule.SECRETS_CONFINED)),
    ],
)
def test_secrets_are_asked_about_and_kept_from_who_is_to_have_none(
    mode: Mode, profile: Confinement, said: tuple[Verdict, Rule]
) -> None:
    decision = decide(mode, Place.WORKSPACE, profile, ALL, has_secrets=True)
    assert (decision.verdict, decision.rule) == said


def test_only_what_can_be_enforced_is_offered() -> None:
    assert caps({Confinement.NONE}) == ("exec", "stdin", "confinement.none")
