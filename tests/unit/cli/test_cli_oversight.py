"""Oversight on the command line: what it prints, what it asks of the hub, and how it ends."""

from __future__ import annotations

import pytest

from fixtures.cli_hub import Served, Terminal
from upright.web.parts import RefusedError


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("wait ls", ["wt_ci", "external: the build runs", "wk_fix"]),
        ("wait ls --all", ["wt_ci"]),
        ("outbox ls", ["ob_fixed", "sent"]),
        ("outbox ls --state sent", ["ob_fixed"]),
        ("outbox show ob_f", ["ob_fixed", "state: sent"]),
        ("stats", ["turns: ", "open request: ", "leases held: ", "stalled: 1", "wk_lost"]),
    ],
)
def test_people_see_what_waits_and_what_was_said(
    served: Served, upright: Terminal, command: str, words: list[str]
) -> None:
    typed = upright(*command.split())
    assert typed.code == 0, typed.err
    for word in words:
        assert word in typed.out


@pytest.mark.parametrize(
    "command", ["wait ls --json", "outbox ls --json", "outbox show ob_f --json", "stats --json"]
)
def test_every_read_prints_json_for_programs(
    served: Served, upright: Terminal, command: str
) -> None:
    assert upright(*command.split()).json()


@pytest.mark.parametrize(
    ("command", "did"),
    [
        ("wait wake wt_c", ("wake", "wt_ci")),
        ("wait cancel wt_c", ("cancel_wait", "wt_ci")),
        ("work cancel wk_f", ("cancel_work", "wk_fix")),
        ("work unblock wk_f", ("unblock", "wk_fix")),
        ("session stop se_f", ("stop", "se_fix")),
        ("outbox retry ob_f", ("retry_effect", "ob_fixed", False)),
        ("outbox retry ob_f --yes", ("retry_effect", "ob_fixed", True)),
        ("outbox discard ob_f", ("discard_effect", "ob_fixed")),
    ],
)
def test_a_command_reaches_the_hub_and_says_so(
    served: Served, upright: Terminal, command: str, did: tuple[object, ...]
) -> None:
    typed = upright(*command.split())
    assert typed.code == 0, typed.err
    assert typed.out.strip()
    assert served.behind.asked[-1] == did
    assert upright(*command.split(), "--json").json()["did"] == did[0]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("wait wake wt_nope", 3),
        ("work cancel se_fix", 3),
        ("outbox ls --state lost", 2),
        ("outbox retry tr_red", 3),
        ("stats --window 0", 2),
        ("session stop", 2),
    ],
)
def test_bad_input_gets_one_sentence_and_its_exit_code(
    served: Served, upright: Terminal, command: str, code: int
) -> None:
    typed = upright(*command.split())
    assert typed.code == code
    assert typed.err.strip()
    assert "Traceback" not in typed.err


def test_what_may_be_visible_is_refused_by_policy(served: Served, upright: Terminal) -> None:
    served.behind.raises = RefusedError("ob_fixed: it may be visible already")
    typed = upright("outbox", "retry", "ob_f")
    assert (typed.code, "may be visible" in typed.err) == (4, True)


def test_nobody_answers_without_a_hub(upright: Terminal) -> None:
    assert upright("stats").code == 5
