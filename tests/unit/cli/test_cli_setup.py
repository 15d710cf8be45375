"""Setting up: what `init` writes works as it stands, and `doctor` says what is missing."""

from __future__ import annotations

import io
import re
import stat
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import click
import keyring
import pytest

from fixtures.cli_hub import Served, Terminal
from upright.cli.main import COMMANDS
from upright.cli.template import template
from upright.settings import shape
from upright.settings.load import SECTIONS, load


# ------------------------------------------------------------------ the file
def test_the_written_file_is_all_defaults(tmp_path: Path) -> None:
    path = tmp_path / "upright.toml"
    path.write_text(template(), encoding="utf-8")
    settings = load({"UPRIGHT_HOME": str(tmp_path)}, file=path)
    assert settings == load({"UPRIGHT_HOME": str(tmp_path)})


def switched_on() -> str:
    """Return the template with each setting that is switched off switched on."""
    return re.sub(r"^#(?! )", "", template(), flags=re.MULTILINE)


def test_every_line_that_is_switched_off_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "upright.toml"
    path.write_text(switched_on(), encoding="utf-8")
    settings = load({"UPRIGHT_HOME": str(tmp_path)}, file=path)
    assert settings.limits == shape.Limits()
    assert settings.sources["github"].connector == "github"
    assert settings.people["ada"].ids == ("github:1815", "slack:U0123456789")
    assert settings.rules[0].facts == (("branch", "main"),)
    assert settings.model.worker.name == "a-strong-model"


def test_every_setting_stands_in_the_file() -> None:
    text = switched_on()
    names = [each.name for section in SECTIONS.values() for each in fields(section)]
    names += ["bots", "trusted_bots", "sources", "people", "rules", "prices"]
    begins = r"^\[*((model|budgets)\.)?"
    assert not [name for name in names if not re.search(rf"{begins}{name}\b", text, re.MULTILINE)]


# ------------------------------------------------------------------ init
def test_init_makes_everything_for_its_owner_alone_and_once(home: Path, upright: Terminal) -> None:
    assert upright("init").out.count("made ") == 4
    for name in ("upright.toml", "api.token", "hub.key", "upright.db"):
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600, name
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    assert upright("init").out.count("made ") == 0
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
    assert upright("db", "check").code == 0
    assert "was at revision" in upright("db", "migrate").out


def test_init_keeps_a_file_that_is_there(home: Path, upright: Terminal) -> None:
    home.mkdir()
    (home / "upright.toml").write_text("[hub]\nport = 1\n", encoding="utf-8")
    assert upright("init").code == 0
    assert (home / "upright.toml").read_text(encoding="utf-8") == "[hub]\nport = 1\n"


def test_a_wrong_configuration_is_one_sentence_and_usage(home: Path, upright: Terminal) -> None:
    home.mkdir()
    (home / "upright.toml").write_text("[hub]\nprot = 1\n", encoding="utf-8")
    for command in ("init", "serve", "inbox", "up"):
        typed = upright(command)
        assert typed.code == 2
        assert typed.err == (
            f"upright: hub.prot in {home}/upright.toml: there is no such key,"
            ' did you mean "port"?\n'
        )


def test_serving_without_a_database_says_what_to_run(home: Path, upright: Terminal) -> None:
    typed = upright("serve")
    assert typed.code == 1
    assert "upright init" in typed.err


def test_checking_a_database_that_is_not_there_is_3(home: Path, upright: Terminal) -> None:
    assert upright("db", "check").code == 3


# ------------------------------------------------------------------ secrets
def test_a_secret_goes_to_the_key_ring_and_is_not_repeated(
    upright: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[tuple[str, str], str] = {}
    monkeypatch.setattr(keyring, "set_password", lambda s, n, v: kept.update({(s, n): v}))
    monkeypatch.setattr("sys.stdin", io.StringIO("hush\n"))
    typed = upright("secret", "set", "github-webhook", "--stdin")
    assert kept == {("upright", "github-webhook"): "hush"}
    assert "keyring:github-webhook" in typed.out
    assert "hush" not in typed.out


def test_an_empty_secret_is_refused(upright: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert upright("secret", "set", "x", "--stdin").code == 2


# ------------------------------------------------------------------ doctor
def verdicts(typed_json: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {check["id"]: check["verdict"] for check in typed_json["checks"]}


def test_doctor_is_content_with_a_fresh_hub_that_rests(home: Path, upright: Terminal) -> None:
    upright("init")
    typed = upright("doctor", "--json")
    found = verdicts(typed.json())
    assert typed.code == 0
    assert found["database"] == found["token"] == found["key"] == found["work"] == "ok"
    assert found["hub"] == found["model"] == "note"
    assert found["plugin github"] == "ok"


def test_doctor_names_what_must_be_set_right(home: Path, upright: Terminal) -> None:
    upright("init")
    (home / "api.token").chmod(0o644)
    (home / "upright.toml").write_text(
        "[sources.gh]\nconnector = 'githbu'\n[model]\nbase_url='http://127.0.0.1:9'\nname='m'\n",
        encoding="utf-8",
    )
    typed = upright("doctor")
    assert typed.code == 1
    assert f"fix: chmod 600 {home}/api.token" in typed.out
    assert "sources.gh.connector in" in typed.out
    assert 'did you mean "github"?' in typed.out
    assert "✗ model: http://127.0.0.1:9: " in typed.out
    assert str(home / "upright.toml") in typed.out  # where each value came from


def test_doctor_looks_at_a_running_hub(served: Served, upright: Terminal) -> None:
    typed = upright("doctor", "--json")
    found = verdicts(typed.json())
    assert found["hub"] == "ok"
    assert found["device box"] == "ok"
    assert found["source github"] == "failed"  # the story's source is in no state that we know


def test_doctor_says_a_wrong_setting_instead_of_failing(home: Path, upright: Terminal) -> None:
    home.mkdir()
    (home / "upright.toml").write_text("[hub", encoding="utf-8")
    typed = upright("doctor")
    assert typed.code == 1
    assert "this is no TOML" in typed.out


# ------------------------------------------------------------------ the shape
@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_of_the_table_is_there_under_its_name(name: str) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert command.name == name


def test_a_sandbox_is_listed_by_its_manifest_and_loaded_when_used(upright: Terminal) -> None:
    assert "github" in upright("sandbox", "--help").out
    assert "--token" in upright("sandbox", "github", "--help").out


def test_nonsense_is_usage(upright: Terminal) -> None:
    assert upright("inboks").code == 2
    assert upright("inbox", "--nope").code == 2
    assert upright("sandbox", "nobody").code == 2
