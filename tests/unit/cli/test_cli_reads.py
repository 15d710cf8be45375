"""Reads: what the commands print of a real database, and how they end."""

from __future__ import annotations

import pytest

from fixtures.cli_hub import Served, Terminal
from upright.core.errors import StaleError
from upright.store.errors import StoreUnavailableError
from upright.web.parts import RefusedError


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("inbox", ["tr_red", "started", "Red", "tr_green", "woke", "because"]),
        ("inbox --limit 1", ["tr_green"]),
        ("inbox --disposition ignored", ["tr_star"]),
        ("show dv_", ["device", "name: box", "os: linux"]),
        ("show wk_fix", ["goal: make it green", "waits: [0]", "why: the build runs"]),
        ("work ls", ["wk_fix", "waiting_external", "external: the build runs", "you: Which"]),
        ("work show wk_", ["make it green", "$0.0000"]),
        ("session ls", ["se_fix", "se_router", "worker", "make it green"]),
        ("session show se_f", ["resting", "cost: 2 calls"]),
        ("session tail se_f", ["#0", "system", "You work.", '→ run {"argv":["make","test"]}']),
        ("requests ls", ["rq_branch", "Which branch?"]),
        ("requests ls --all", ["rq_done", "answered"]),
        ("device ls", ["dv_box", "online", "/src/app"]),
        ("source ls", ["github", "/hooks/github"]),
        ("cost", ["in all: 3 calls", "wk_fix"]),
    ],
)
def test_people_see_what_matters(
    served: Served, upright: Terminal, command: str, words: list[str]
) -> None:
    typed = upright(*command.split())
    assert typed.code == 0, typed.err
    for word in words:
        assert word in typed.out


@pytest.mark.parametrize(
    "command",
    [
        "inbox --json",
        "inbox --why tr_red --json",
        "show tr_red --json",
        "why tr_red --json",
        "work ls --json",
        "work show wk_ --json",
        "session ls --json",
        "session show se_fix --json",
        "requests ls --json",
        "device ls --json",
        "device pairings --json",
        "source ls --json",
        "cost --json",
        "doctor --json",
    ],
)
def test_every_read_prints_json_for_programs(
    served: Served, upright: Terminal, command: str
) -> None:
    assert upright(*command.split()).json()


def test_a_tail_begins_where_it_was_asked_to(served: Served, upright: Terminal) -> None:
    lines = upright("session", "tail", "se_fix", "--entries", "1", "--json").out.splitlines()
    assert len(lines) == 1
    assert '"n": 3' in lines[0]


def test_why_is_a_path_with_times_and_cost(served: Served, upright: Terminal) -> None:
    typed = upright("why", "wk_fix")
    assert typed.code == 0
    told = [line.strip("│├└─ ") for line in typed.out.splitlines()]
    assert told[0] == "tr_red  ci.failed from github"
    assert any(line.startswith("to the worker se_") for line in told)
    assert any("turn of the router" in line for line in told)
    worker = next(n for n, line in enumerate(told) if "turn of the worker" in line)
    assert "outbox.made ob_fixed sent https://example.org/99" in told[worker + 2]
    assert any("job.ended jb_test `make test`" in line for line in told)
    assert told[-1].startswith("cost: 3 calls, 400 in (160 cached), 40 out, $0.0000 + 1 unpriced")


# ------------------------------------------------------------------ how it ends
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("show tr_nope", 3, "nothing has an id that begins with 'tr_nope'"),
        ("show tr_", 2, "begins several ids: tr_green"),
        ("work show tr_red", 3, "tr_red is a trigger, not a work"),
        ("inbox --disposition odd", 2, "disposition is one of"),
        ("device approve NOPE", 2, "nobody is here to compare"),
    ],
)
def test_what_fails_is_one_sentence_and_a_code(
    served: Served, upright: Terminal, *, command: str, code: int, said: str
) -> None:
    typed = upright(*command.split())
    assert typed.code == code
    assert said in typed.err
    assert typed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [(RefusedError("no"), 4), (StaleError(), 1), (StoreUnavailableError("full"), 75)],
)
def test_what_the_hub_refuses_has_its_code(
    served: Served, upright: Terminal, error: Exception, code: int
) -> None:
    served.behind.raises = error
    assert upright("approve", "rq_branch").code == code


def test_without_the_right_token_everything_is_refused(
    served: Served, upright: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPRIGHT_TOKEN", "wrong")
    typed = upright("inbox")
    assert typed.code == 4
    assert "api.token" in typed.err


def test_a_hub_that_is_not_there_is_5_and_says_how_to_start_it(
    upright: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPRIGHT_HUB", "http://127.0.0.1:9")
    typed = upright("inbox")
    assert typed.code == 5
    assert "start one with `upright up`" in typed.err


def test_a_stranger_at_the_address_is_called_one(
    upright: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPRIGHT_HUB", "ftp://x")
    typed = upright("inbox")
    assert typed.code == 2
    assert "must be an address such as" in typed.err


# ------------------------------------------------------------------ commands
@pytest.mark.parametrize(
    ("command", "did"),
    [
        (["answer", "rq_b", "the main one"], ("answer", "rq_branch", "the main one")),
        (["approve", "rq_b"], ("decide", "rq_branch", True)),
        (["deny", "rq_b"], ("decide", "rq_branch", False)),
        (["session", "say", "se_f", "go on"], ("say", "se_fix", "go on", "operator.message")),
        (["session", "interrupt", "se_f", "stop"], ("say", "se_fix", "stop", "operator.interrupt")),
        (["source", "retry", "gh"], ("retry", "gh")),
    ],
)
def test_a_command_is_done_once(
    served: Served, upright: Terminal, command: list[str], did: tuple[object, ...]
) -> None:
    assert upright(*command).code == 0
    assert served.behind.asked == [did]


def test_revoking_says_which_device(served: Served, upright: Terminal) -> None:
    assert upright("device", "revoke", "dv").out == "Revoked dv_box.\n"


@pytest.mark.clause("E1.2")
def test_a_device_is_approved_when_the_digits_agree(served: Served, upright: Terminal) -> None:
    typed = upright("device", "approve", "BCDF-GHJK", "--digits", "123456")
    assert typed.out == "Paired laptop as dv_new.\n"
    assert served.behind.asked[-1] == ("pair", "BCDF-GHJK", "hash")


@pytest.mark.clause("E1.2")
def test_a_device_whose_digits_differ_is_refused(served: Served, upright: Terminal) -> None:
    typed = upright("device", "approve", "BCDF-GHJK", "--digits", "123457")
    assert typed.code == 4
    assert ("pair", "BCDF-GHJK", "hash") not in served.behind.asked


def test_a_device_can_be_approved_by_somebody_who_has_compared(
    served: Served, upright: Terminal
) -> None:
    assert upright("device", "approve", "BCDF-GHJK", "--yes").code == 0
