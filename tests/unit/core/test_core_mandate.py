from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.api import ActorKind, EffectClass
from upright.core.mandate import (
    TABLE,
    Decision,
    Mandate,
    Trust,
    decide,
    instructs,
    taint,
    trust_of,
)

# B14.2, cell by cell.
CELLS: Final = """
    taint     read   work            reply  reach  shell
    operator  allow  allow           allow  ask    ask
    member    allow  allow           allow  ask    ask
    contact   allow  allow_confined  allow  ask    deny
    stranger  allow  allow_isolated  ask    ask    deny
"""
ORDER: Final = ("allow", "allow_confined", "allow_isolated", "ask", "deny")


def cells() -> list[tuple[str, str, str]]:
    head, *rows = [line.split() for line in CELLS.strip().split("\n")]
    return [
        (row[0], effect, said)
        for row in rows
        for effect, said in zip(head[1:], row[1:], strict=True)
    ]


def severity(decision: Decision) -> int:
    return ORDER.index(decision.value)


PLAIN: Final = Mandate(given_by="operator", trust=Trust.OPERATOR)
CLASSES: Final = st.frozensets(st.sampled_from(EffectClass))
MANDATES: Final = st.builds(
    Mandate,
    given_by=st.just("operator"),
    trust=st.sampled_from(Trust),
    ask=CLASSES,
    deny=CLASSES,
    reach_allowed=st.booleans(),
)


@pytest.mark.clause("B14.2")
@pytest.mark.parametrize(("trust", "effect", "said"), cells())
def test_the_table_says_what_the_design_says(trust: str, effect: str, said: str) -> None:
    assert decide(PLAIN, Trust[trust.upper()], EffectClass(effect)) == said


def test_the_table_covers_every_trust_and_every_effect() -> None:
    assert set(TABLE) == set(Trust)
    assert all(set(row) == set(EffectClass) for row in TABLE.values())
    assert len(cells()) == len(Trust) * len(EffectClass)


@pytest.mark.clause("B14.2")
@pytest.mark.parametrize("effect", list(EffectClass))
def test_less_trust_never_allows_more(effect: EffectClass) -> None:
    said = [severity(decide(PLAIN, trust, effect)) for trust in sorted(Trust, reverse=True)]
    assert said == sorted(said)


@pytest.mark.clause("B14.2")
def test_a_mandate_opens_one_cell_only_reach_under_the_operator() -> None:
    opened = Mandate(given_by="operator", trust=Trust.OPERATOR, reach_allowed=True)
    changed = {
        (trust, effect): decide(opened, trust, effect)
        for trust in Trust
        for effect in EffectClass
        if decide(opened, trust, effect) is not decide(PLAIN, trust, effect)
    }
    assert changed == {(Trust.OPERATOR, EffectClass.REACH): Decision.ALLOW}


@pytest.mark.clause("B14.2")
@given(mandate=MANDATES, trust=st.sampled_from(Trust), effect=st.sampled_from(EffectClass))
def test_tightening_never_loosens(mandate: Mandate, trust: Trust, effect: EffectClass) -> None:
    untightened = Mandate(
        given_by="operator", trust=mandate.trust, reach_allowed=mandate.reach_allowed
    )
    said = decide(mandate, trust, effect)
    assert severity(said) >= severity(decide(untightened, trust, effect))
    if effect in mandate.ask:
        assert severity(said) >= severity(Decision.ASK)
    if effect in mandate.deny:
        assert said is Decision.DENY
    if effect not in mandate.ask | mandate.deny:
        assert said is decide(untightened, trust, effect)


@pytest.mark.clause("B14.2")
def test_a_mandate_that_asks_does_not_soften_a_denial() -> None:
    asks = Mandate(given_by="o", trust=Trust.OPERATOR, ask=frozenset({EffectClass.SHELL}))
    assert decide(asks, Trust.CONTACT, EffectClass.SHELL) is Decision.DENY


def test_a_mandate_that_asks_wins_over_an_opened_reach() -> None:
    asks = Mandate(
        given_by="o",
        trust=Trust.OPERATOR,
        ask=frozenset({EffectClass.REACH}),
        reach_allowed=True,
    )
    assert decide(asks, Trust.OPERATOR, EffectClass.REACH) is Decision.ASK


@pytest.mark.clause("B14.2")
@given(inputs=st.lists(st.sampled_from(Trust), min_size=1))
def test_taint_is_the_least_trusted_input(inputs: list[Trust]) -> None:
    tainted = taint(inputs)
    assert tainted in inputs
    assert all(tainted <= one for one in inputs)


def test_nothing_read_is_the_operators() -> None:
    assert taint(()) is Trust.OPERATOR


@pytest.mark.clause("B14.1", "B14.2")
@pytest.mark.parametrize(
    ("kind", "trust", "speaks"),
    [
        (ActorKind.OPERATOR, Trust.OPERATOR, True),
        (ActorKind.SYSTEM, Trust.OPERATOR, False),
        (ActorKind.SELF, Trust.MEMBER, False),
        (ActorKind.MEMBER, Trust.MEMBER, True),
        (ActorKind.CONTACT, Trust.CONTACT, False),
        (ActorKind.BOT, Trust.STRANGER, False),
        (ActorKind.STRANGER, Trust.STRANGER, False),
    ],
)
def test_each_kind_of_actor_has_its_trust_and_few_of_them_instruct(
    *, kind: ActorKind, trust: Trust, speaks: bool
) -> None:
    assert trust_of(kind) is trust
    assert instructs(kind) is speaks


def test_trust_is_spelled_for_people() -> None:
    assert [trust.label for trust in Trust] == ["stranger", "contact", "member", "operator"]
