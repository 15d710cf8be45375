"""Prompts: whole lines in the order of stability, and reasons that stay at home."""

from __future__ import annotations

import pytest

from upright.agent.prompts.part import Part
from upright.agent.prompts.system import PARTS, SYSTEM


@pytest.mark.clause("B8.1")
def test_what_all_agents_are_told_comes_before_what_one_kind_is_told() -> None:
    shared = {part.text for part in PARTS["router"]} & {part.text for part in PARTS["worker"]}
    assert shared
    for parts in PARTS.values():
        is_shared = [part.text in shared for part in parts[1:]]  # the first says who it is
        assert is_shared == sorted(is_shared, reverse=True)


def test_a_reason_is_never_sent() -> None:
    for kind, parts in PARTS.items():
        assert SYSTEM[kind] == "".join(part.text for part in parts)
        assert all(part.why not in SYSTEM[kind] for part in parts)


@pytest.mark.parametrize(("text", "why"), [("no line", "because"), ("a line\n", "")])
def test_a_part_without_a_reason_or_an_end_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="says why"):
        Part(text=text, why=why)
