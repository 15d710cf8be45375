"""Rules, people and subscriptions from the command line, over the API and a real database."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from fixtures.cli_hub import Served, Terminal
from upright.settings.rules import EMPTY
from upright.store import rules
from upright.store.tables import SUBSCRIPTION

QUIET = '[[rules]]\nname = "quiet"\nverdict = "ignore"\nkinds = ["star.*"]\nurgent = true\n'


@pytest.fixture
def with_rules(served: Served) -> Served:
    """Have the file's rules taken over, as at a start."""
    served.call(served.behind.units.write(lambda u: rules.take_over(u, EMPTY)))
    return served


def edited(upright: Terminal, folder: Path, text: str) -> tuple[int, str, str]:
    file = folder / "new.toml"
    file.write_text(text, encoding="utf-8")
    typed = upright("rules", "edit", "--file", str(file))
    return typed.code, typed.out, typed.err


# ------------------------------------------------------------------ rules
@pytest.mark.clause("B3.4")
def test_rules_are_listed_in_their_order_with_their_hits(
    with_rules: Served, upright: Terminal, tmp_path: Path
) -> None:
    code, out, _ = edited(upright, tmp_path, QUIET)
    assert (code, out) == (0, "version 2 holds, with 1 rules of your own\n")
    lines = upright("rules", "ls").out.splitlines()
    assert lines[1].split() == ["0", "ignore,", "urgent", "version", "2", "quiet"]
    assert "built in" in lines[2]
    found = upright("rules", "ls", "--json").json()
    assert [rule["name"] for rule in found["rules"][:2]] == ["quiet", "own output"]
    assert (found["number"], found["by"]) == (2, "operator")


@pytest.mark.clause("B3.4")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[rules]]\nname = "a"\nverdict = "ignore"\nkind = ["x"]\n', 'did you mean "kinds"?'),
        ('[[rule]]\nname = "a"\n', 'did you mean "rules"?'),
        ('[[rules]]\nname = "a"\nverdict = "ignor"\n', 'did you mean "ignore"?'),
        ('[[rules]]\nname = "a"\n', "rules.0.verdict in the rules: this key is missing"),
        ("[[rules]\n", "this is no TOML"),
        (QUIET + QUIET, "each rule needs a name of its own"),
    ],
)
def test_a_bad_rule_is_one_clear_error_and_nothing_has_changed(
    with_rules: Served, upright: Terminal, tmp_path: Path, *, text: str, problem: str
) -> None:
    code, out, said = edited(upright, tmp_path, text)
    assert (code, out) == (2, "")
    assert problem in said
    assert len(said.splitlines()) == 1
    assert upright("rules", "ls", "--json").json()["number"] == 1


@pytest.mark.clause("B3.4")
def test_versions_are_listed_and_compared(
    with_rules: Served, upright: Terminal, tmp_path: Path
) -> None:
    edited(upright, tmp_path, QUIET)
    edited(upright, tmp_path, QUIET.replace("star.*", "push"))
    history = upright("rules", "history", "--json").json()
    assert [(one["number"], one["by"]) for one in history] == [
        (3, "operator"),
        (2, "operator"),
        (1, "file"),
    ]
    assert "file" in upright("rules", "history").out
    newest = upright("rules", "diff").out
    assert '-kinds = ["star.*"]' in newest
    assert '+kinds = ["push"]' in newest
    assert "+name" not in newest
    assert '+name = "quiet"' in upright("rules", "diff", "1", "3").out
    assert upright("rules", "diff", "0").code == 3
    assert upright("rules", "diff", "9").code == 3


@pytest.mark.clause("B3.4")
def test_an_editor_changes_the_text_and_what_is_refused_is_kept(
    with_rules: Served, upright: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed: list[str | None] = [QUIET, None, QUIET, "kinds = 3\n"]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(click, "edit", lambda text, **more: typed.pop(0))
    assert upright("rules", "edit", "--json").json() == {"number": 2, "rules": 1, "changed": True}
    assert [upright("rules", "edit").err for _ in range(2)] == ["Nothing changed.\n"] * 2
    refused = upright("rules", "edit")
    assert refused.code == 2
    (kept,) = tmp_path.glob("upright-rules-*.toml")
    assert str(kept) in refused.err
    assert kept.read_text(encoding="utf-8") == "kinds = 3\n"


@pytest.mark.clause("B3.4")
def test_who_edits_what_has_changed_meanwhile_is_told_so(
    with_rules: Served, upright: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(text: str | None, **more: object) -> str:
        edited(upright, tmp_path, QUIET)
        return QUIET.replace("quiet", "loud")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(click, "edit", meanwhile)
    typed = upright("rules", "edit")
    assert typed.code == 1
    assert "upright rules diff 1 2" in typed.err


# ------------------------------------------------------------------ people
@pytest.mark.clause("B6.11")
def test_people_are_added_linked_and_listed(with_rules: Served, upright: Terminal) -> None:
    assert upright("people", "add", "zoe", "--kind", "contact").code == 0
    assert upright("people", "link", "zoe", "mail:zoe@acme.io", "--json").json()["name"] == "zoe"
    assert upright("people", "link", "ann", "chat:U7").out.startswith("chat:U7 is ann")
    out = upright("people", "ls").out
    assert "mail:zoe@acme.io" in out
    found = {one["name"]: one for one in upright("people", "ls", "--json").json()}
    assert found["ann"]["ids"] == ["chat:U7", "gh:ann"]
    again = upright("people", "add", "zoe", "--kind", "member", "--json")
    assert (again.code, again.out) == (1, "")
    assert upright("people", "link", "nobody", "gh:x").code == 3
    assert upright("people", "add", "x", "--kind", "bot").code == 2


# ------------------------------------------------------------------ subscriptions
@pytest.mark.clause("B6.2", "B6.4")
def test_subscriptions_are_listed_removed_and_added(served: Served, upright: Terminal) -> None:
    assert "Pull request 7" in upright("sub", "ls").out
    again = upright("sub", "add", "wk_fix", "tr_red")
    assert again.out == "se_fix followed already th_pr\n"
    left = upright("sub", "rm", "wk_fix", "th_pr")
    assert left.out == "se_fix follows th_pr no more\n"
    assert upright("sub", "ls", "--json").json() == []
    assert ("woken", "se_router") in served.behind.asked
    added = upright("sub", "add", "se_fix", "th_pr", "--json").json()
    assert added == {"session": "se_fix", "thread": "th_pr", "joined": True}
    gone = upright("sub", "rm", "se_router", "th_pr")
    assert gone.code == 3
    assert upright("sub", "add", "th_pr", "th_pr").code == 1
    rows = served.call(served.behind.store.read(lambda c: c.execute(SUBSCRIPTION.select()).all()))
    assert len(rows) == 1
