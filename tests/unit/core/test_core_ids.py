from __future__ import annotations

import pytest

from upright.core.ids import PREFIXES, kind_of


@pytest.mark.clause("B7.5")
@pytest.mark.parametrize("kind", sorted(PREFIXES))
def test_an_id_names_its_kind(kind: str) -> None:
    assert kind_of(f"{PREFIXES[kind]}_01abc") == kind


def test_the_beginning_of_an_id_is_enough() -> None:
    assert kind_of("jb_") == "job"


@pytest.mark.parametrize("text", ["", "jb", "xx_1", "JB_1", "_1", "job_1"])
def test_anything_else_names_none(text: str) -> None:
    assert kind_of(text) is None


def test_no_two_kinds_share_a_prefix() -> None:
    assert len(set(PREFIXES.values())) == len(PREFIXES)
