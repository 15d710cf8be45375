"""What `upright why` says of a trigger: what it changes, who takes it how, what was chosen."""

from __future__ import annotations

from typing import Any

import click
import pytest

from upright.cli import why

COSTS = {
    "calls": 0,
    "tokens_input": 0,
    "tokens_cached": 0,
    "tokens_output": 0,
    "usd_micros": None,
    "unpriced": 0,
}


def path(**changed: object) -> dict[str, Any]:
    """Make the path of a trigger that went to one worker."""
    delivery = {
        "session_kind": "worker",
        "session_id": "se_1",
        "wake": True,
        "folded": False,
        "strategy": "queue",
        "turn_id": "tn_1",
        **changed,
    }
    chosen = {
        "at_ms": 5,
        "stop": "strategy.chosen",
        "turn_id": None,
        "job_id": None,
        "outbox_id": None,
        "data": {"verdict": "cancel", "options": ["cancel", "queue"], "urgent": False, "took_ms": 0}
        | {"advice": None},
    }
    trigger = {
        "id": "tr_2",
        "kind": "comment.edited",
        "source": "github",
        "received_at_ms": 0,
        "disposition": "woke",
        "reason": "passed through",
        "rule": "default",
        "verdict": "candidate",
        "edits_id": "tr_1",
    }
    return {
        "trigger": trigger,
        "deliveries": [delivery],
        "turns": [],
        "jobs": [],
        "outbox": [],
        "events": [chosen],
        "costs": COSTS,
    }


def said(**changed: object) -> list[str]:
    return [click.unstyle(line).strip() for line in why.lines(path(**changed))]


def test_an_edit_names_what_it_changes() -> None:
    assert "it changes tr_1" in said()


@pytest.mark.parametrize(
    ("changed", "how"),
    [
        ({}, "at the next safe point"),
        ({"strategy": "cancel"}, "it cut short what was under way"),
        ({"strategy": "parallel"}, "answered beside the turn"),
        ({"wake": False}, "as context, without a wake"),
        ({"folded": True}, "at the next safe point, folded into a later wake"),
        ({"turn_id": None}, "at the next safe point, not read yet"),
        ({"strategy": None}, "at the next safe point"),
    ],
)
def test_each_who_got_it_is_named_with_how_it_takes_it(
    changed: dict[str, object], how: str
) -> None:
    assert f"to the worker se_1: {how}" in said(**changed)


@pytest.mark.clause("B9.6")
def test_a_choice_is_one_line_of_what_counts() -> None:
    (line,) = [line for line in said() if "strategy.chosen" in line]
    assert line.endswith("strategy.chosen verdict=cancel options=cancel, queue took_ms=0")
