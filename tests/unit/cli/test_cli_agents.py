"""``upright agent``: what a person sees of agents, makes, and takes in from their folders."""

from __future__ import annotations

import pytest

from fixtures.cli_hub import Served, Terminal


@pytest.mark.clause("B17.1")
def test_agents_are_made_listed_shown_and_taken_in(served: Served, upright: Terminal) -> None:
    made = upright("agent", "new", "mia", "--template", "reviewer")
    assert made.code == 0, made.err
    listed = upright("agent", "ls").out
    assert [line.split()[0] for line in listed.splitlines()] == [
        "NAME",
        "developer",
        "mia",
        "router",
    ]
    shown = upright("agent", "show", "mia").out
    for word in ("AGENTS.md", "template reviewer", "review-a-change: The order", "home: "):
        assert word in shown
    assert upright("agent", "sync").out == "Nothing has changed.\n"
    folder = served.behind.folder / "agents" / "mia"
    (folder / "AGENTS.md").write_text("## Role\nMine.\n", encoding="utf-8")
    (folder / "run.sh").write_text("x", encoding="utf-8")
    said = upright("agent", "sync").out
    assert "mia/AGENTS.md: taken in" in said
    assert "mia/run.sh: refused: " in said


def test_an_agent_that_there_is_not_is_one_clear_error(served: Served, upright: Terminal) -> None:
    typed = upright("agent", "show", "nobody")
    assert (typed.code, "nobody" in typed.err) == (3, True)


def test_agents_are_json_for_programs(served: Served, upright: Terminal) -> None:
    assert upright("agent", "ls", "--json").json() == []
    assert upright("agent", "sync", "--json").json()[0]["agent"] == "developer"
