"""Approving from the command line: what would be sent is shown, and its digest goes along."""

from __future__ import annotations

import io
from typing import Final

import pytest

from fixtures.cli_hub import Served, Terminal
from fixtures.store_rows import effect, put, request
from upright.core.outbox import OutboxState
from upright.core.request import RequestKind
from upright.store import tables_world

SEEN: Final = "4f2a91c07d" + "0" * 54
HELD: Final = (
    tables_world.Outbox(
        **{
            **effect("ob_held", "wk_fix").model_dump(),
            "text": "Fixed.\n\x1b[2JSend \u202eit.",
            "digest": SEEN,
            "state": OutboxState.HELD,
        }
    ),
    tables_world.Request(
        **{
            **request("rq_send", "wk_fix").model_dump(),
            "kind": RequestKind.APPROVAL,
            "outbox_id": "ob_held",
            "digest": SEEN,
        }
    ),
)


@pytest.fixture
def asked(served: Served) -> Served:
    """A hub that asks whether it may send something."""
    served.call(served.behind.store.write(lambda c: put(c, *HELD)))
    return served


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    ("words", "named"), [(["--yes"], SEEN), (["--digest", SEEN[:8]], SEEN[:8])]
)
def test_what_would_be_sent_is_shown_and_its_digest_goes_with_the_yes(
    asked: Served, upright: Terminal, words: list[str], named: str
) -> None:
    typed = upright("approve", "rq_s", *words)
    assert typed.code == 0
    assert f"digest {SEEN}" in typed.out
    assert '["number", "7"]' in typed.out
    assert "Fixed.\n\\u001b[2JSend \\u202eit.\n" in typed.out
    assert asked.behind.asked == [("decide", "rq_send", True, named)]


@pytest.mark.clause("B14.3")
def test_where_nobody_can_be_asked_nothing_is_approved_unseen(
    asked: Served, upright: Terminal
) -> None:
    typed = upright("approve", "rq_send")
    assert (typed.code, asked.behind.asked) == (2, [])
    assert "--digest" in typed.err
    assert "--yes" in typed.err


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_on_a_terminal_a_person_is_asked_whether_exactly_this_is_sent(
    asked: Served, upright: Terminal, monkeypatch: pytest.MonkeyPatch, *, typed: str, code: int
) -> None:
    keyboard = io.StringIO(typed)
    monkeypatch.setattr(keyboard, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", keyboard)
    assert upright("approve", "rq_send").code == code
    said = [("decide", "rq_send", True, SEEN)] if code == 0 else []
    assert asked.behind.asked == said


def test_for_programs_only_the_answer_is_on_standard_output(
    asked: Served, upright: Terminal
) -> None:
    typed = upright("approve", "rq_send", "--yes", "--json")
    assert typed.json()["did"] == "decide"
    assert f"digest {SEEN}" in typed.err
