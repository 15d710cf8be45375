"""Accounts, tokens, links and the audit trail from the command line (S1, S5)."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend

from fixtures.cli_hub import Served, Terminal
from upright.cli.errors import CliError
from upright.cli.place import Place, is_here, ring_name


class Ring(KeyringBackend):
    """A key ring in memory."""

    priority = 1.0

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def ring() -> Iterator[Ring]:
    before, mine = keyring.get_keyring(), Ring()
    keyring.set_keyring(mine)
    yield mine
    keyring.set_keyring(before)


def test_a_person_is_given_a_role_a_link_and_is_revoked(served: Served, upright: Terminal) -> None:
    assert upright("people", "role", "ann", "operator", "--exec").code == 0
    linked = upright("people", "link-in", "ann")
    assert linked.out.startswith(f"{served.url}/sign-in/link/")
    listed = upright("people", "ls", "--json").json()
    assert {row["name"]: row["role"] for row in listed}["ann"] == "operator+exec"
    assert upright("people", "revoke", "ann").code == 0
    assert "revoked" in upright("people", "ls").out


def test_the_owners_link_is_printed(served: Served, upright: Terminal) -> None:
    assert upright("login").out.startswith(f"{served.url}/sign-in/link/")


def test_a_token_is_made_listed_and_revoked(served: Served, upright: Terminal) -> None:
    made = upright("token", "new", "ci", "--scope", "read", "--scope", "act", "--json").json()
    assert made["token"].startswith("uprt_")
    shown = upright("token", "ls")
    assert "ci" in shown.out
    assert "act read" in shown.out
    assert made["token"] not in shown.out
    assert upright("token", "revoke", made["id"]).code == 0
    assert "revoked" in upright("token", "ls").out


@pytest.mark.case("XX/expiry")
def test_a_token_that_ends_within_a_week_is_in_the_list_and_in_doctor(
    served: Served, upright: Terminal
) -> None:
    for name, days in (("nightly", "6"), ("yearly", "300")):
        assert upright("token", "new", name, "--days", days).code == 0
    assert "ending" in upright("token", "ls").out
    found = upright("doctor", "--json").json()["checks"]
    (said,) = [each for each in found if each["id"].startswith("token ")]
    assert (said["id"], said["verdict"]) == ("token nightly", "note")
    assert said["fix"] == "upright token new nightly --scope read"


def test_the_trail_says_who_did_what(served: Served, upright: Terminal) -> None:
    upright("people", "role", "ann", "viewer")
    upright("session", "stop", "se_fix")
    rows = upright("audit", "--json").json()
    assert [(row["who"], row["via"], row["action"], row["object"]) for row in rows] == [
        ("local", "local", "sessions.stop", "se_fix"),
        ("local", "local", "accounts.give", "ann"),
    ]
    assert "accounts.give" not in upright("audit", "--action", "sessions").out
    assert "Nobody" in upright("audit", "--who", "eve").err


def test_a_token_for_another_hub_is_tried_and_kept_in_the_key_ring(
    served: Served, upright: Terminal, ring: Ring, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = upright("token", "new", "laptop", "--json").json()
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{made['token']}\n"))
    said = upright("login", served.url, "--stdin")
    assert "viewer" in said.out
    assert ring.kept == {("upright", ring_name(served.url)): made["token"]}
    monkeypatch.setattr("sys.stdin", io.StringIO("wrong\n"))
    assert upright("login", served.url, "--stdin").code == 4
    assert ring.kept == {("upright", ring_name(served.url)): made["token"]}


@pytest.mark.parametrize("url", ["https://hub.example.org", "https://hub.example.org/"])
def test_this_machines_own_token_never_goes_to_another(
    home: Path, ring: Ring, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    home.mkdir()
    (home / "api.token").write_text("mine")
    monkeypatch.setenv("UPRIGHT_HUB", url)
    assert Place().token() == ""
    ring.set_password("upright", ring_name(url), "theirs")
    assert Place().token() == "theirs"
    monkeypatch.setenv("UPRIGHT_HUB", "http://localhost:1")
    assert Place().token() == "mine"


def test_no_token_leaves_this_machine_in_clear(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPRIGHT_HUB", "http://hub.example.org")
    monkeypatch.setenv("UPRIGHT_TOKEN", "mine")
    with pytest.raises(CliError, match="use https"):
        Place().hub.get("v1", "status")


def test_this_machine_is_known_by_its_own_names_alone() -> None:
    assert is_here("http://127.0.0.1:1")
    assert is_here("http://[::1]:1")
    assert not is_here("http://127.0.0.1.evil.example")


def test_an_item_is_made_private_by_its_owner_alone(served: Served, upright: Terminal) -> None:
    for verb in ("private", "share"):
        typed = upright("work", verb, "wk_fix")
        assert typed.code == 1
        assert "only its owner" in typed.err
