"""Sources and plugins at the command line: added, switched, tested; the file keeps its comments."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fixtures.cli_hub import Served, Terminal
from upright.api import Probe
from upright.settings.load import load

GOOD = ("secret=keyring:s", "token=env:T", "bot_login=my-bot", "repositories=acme/app, acme/lib")


def sources(home: Path) -> dict[str, dict[str, object]]:
    text = (home / "upright.toml").read_text(encoding="utf-8")
    found: dict[str, dict[str, object]] = tomllib.loads(text).get("sources", {})
    return found


def test_a_source_is_added_with_the_types_of_its_kind(home: Path, upright: Terminal) -> None:
    upright("init")
    before = (home / "upright.toml").read_text(encoding="utf-8")
    typed = upright("source", "add", "gh", "github", *GOOD, "timeout_s=7", "mode=off")
    assert typed.code == 0
    assert "/hooks/gh" in typed.out
    assert sources(home)["gh"]["repositories"] == ["acme/app", "acme/lib"]
    assert (home / "upright.toml").read_text(encoding="utf-8").startswith(before)
    assert load({"UPRIGHT_HOME": str(home)}).sources["gh"].keys["timeout_s"] == 7


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("github", "secrett=env:S"), 'did you mean "secret"?'),
        (("github", *GOOD, "timeout_s=soon"), "timeout_s"),
        (("github", *GOOD, "mode=of"), 'did you mean "off"?'),
        (("github", *GOOD[2:], GOOD[0]), "this key is missing"),
        (("github", *GOOD[1:]), "secret is missing"),
        (("githbu", *GOOD), 'did you mean "github"?'),
        (("github", *GOOD, "secret"), "is no key=value"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(
    home: Path, upright: Terminal, given: tuple[str, ...], said: str
) -> None:
    upright("init")
    typed = upright("source", "add", "gh", *given)
    assert (typed.code, said in typed.err) == (2, True), typed.err
    assert sources(home) == {}


def test_a_secret_that_is_no_reference_is_refused_and_not_repeated(
    home: Path, upright: Terminal
) -> None:
    upright("init")
    typed = upright("source", "add", "gh", "github", "secret=hunter2", *GOOD[1:])
    assert typed.code == 2
    assert "hunter2" not in typed.err + typed.out


def test_a_source_is_disabled_and_enabled_and_one_that_is_not_there_is_named(
    home: Path, upright: Terminal
) -> None:
    upright("init")
    upright("source", "add", "gh", "github", *GOOD)
    assert upright("source", "disable", "gh").code == 0
    assert not load({"UPRIGHT_HOME": str(home)}).sources["gh"].enabled
    assert upright("source", "enable", "gh").code == 0
    assert load({"UPRIGHT_HOME": str(home)}).sources["gh"].enabled
    typed = upright("source", "disable", "gg")
    assert (typed.code, 'did you mean "gh"?' in typed.err) == (2, True)


def test_without_a_file_it_says_how_to_make_one(home: Path, upright: Terminal) -> None:
    assert "upright init" in upright("source", "add", "gh", "github", *GOOD).err


@pytest.mark.feature("common.doctor")
def test_a_live_check_goes_through_the_hub(served: Served, upright: Terminal) -> None:
    assert upright("source", "test", "gh").out == "✓ gh: All is well\n"
    served.behind.probe = Probe(ok=False, summary="Bad credentials", scopes=("repo",))
    typed = upright("source", "test", "gh")
    assert (typed.code, typed.out) == (1, "✗ gh: Bad credentials (may: repo)\n")
    assert upright("source", "test", "gh", "--json").json()["ok"] is False
    assert upright("source", "test", "nothing").code == 3


def test_dead_letters_and_gaps_stand_in_the_list(served: Served, upright: Terminal) -> None:
    served.behind.dead_letters = {"count": 2, "last": "KeyError: 'x'", "at": None}
    assert "2 dead letters, the last: KeyError" in upright("source", "ls").out


def test_plugins_are_listed_from_their_manifests(home: Path, upright: Terminal) -> None:
    upright("init")
    upright("source", "add", "gh", "github", *GOOD)
    rows = {row["name"]: row for row in upright("plugin", "ls", "--json").json()}
    assert (rows["github"]["state"], rows["github"]["sources"]) == ("in use", ["gh"])
    assert rows["github"]["quality"]
    upright("source", "disable", "gh")
    assert "not used" in upright("plugin", "ls").out
