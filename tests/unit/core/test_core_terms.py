from __future__ import annotations

import pytest

from upright.api import EffectClass
from upright.core.terms import DEFAULT_TERMS, Terms
from upright.core.wait import WaitKind


def test_a_reply_is_worth_sending_for_a_day() -> None:
    assert DEFAULT_TERMS.life_ms(EffectClass.REPLY) == 24 * 3600 * 1000


def test_a_class_without_a_life_of_its_own_has_a_day() -> None:
    assert Terms(lives_s={}).life_ms(EffectClass.WORK) == 24 * 3600 * 1000


@pytest.mark.clause("B11.3")
def test_a_deadline_is_what_was_asked_for_else_its_kinds() -> None:
    terms = Terms(deadlines_s={WaitKind.JOB: 7})
    assert terms.wait_s(WaitKind.JOB, None) == 7
    assert terms.wait_s(WaitKind.JOB, 3) == 3
