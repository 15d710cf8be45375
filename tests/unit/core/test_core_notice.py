from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from upright.api import Destination
from upright.core.mandate import Trust
from upright.core.notice import MOST_CHARS, Asked, notice
from upright.core.request import RequestKind
from upright.core.spoken import read
from upright.kit.dialects import matrix_html, mrkdwn, plain

ID: Final = "rq_01k0000000000000000000000a"
ASKED: Final = Asked(
    request=ID,
    kind=RequestKind.APPROVAL,
    item="wk_1",
    until="2026-06-01 10:00 UTC",
    text="Fixed.",
    digest="4f2a91c07d" + "0" * 54,
    to=Destination(source="gh", kind="comment", address=(("number", "7"),)),
    trust=Trust.STRANGER,
)
APPROVE: Final = f"approve {ID} 4f2a91c07d"


def lines_that_answer(text: str) -> list[str]:
    """Return the lines that would decide something if somebody sent them."""
    return [line for line in text.splitlines() if read(line)]


@pytest.mark.clause("B14.3", "B14.4")
def test_an_approval_shows_what_where_by_whom_under_which_digest_and_how_to_answer() -> None:
    said = notice(ASKED)
    assert said == (
        f"An approval is wanted (wk_1): {ID}, until 2026-06-01 10:00 UTC.\n\n"
        "Whoever wrote it had read what a stranger says, and may follow that.\n\n"
        "Exactly this would be sent:\n\n```\nFixed.\n```\n\n"
        'To:\n\n```\n{"source": "gh", "kind": "comment", "number": "7"}\n```\n\n'
        f"Its digest: {ASKED.digest}\n\n"
        "Answer here with one of these lines, as the whole message:\n\n"
        f"```\n{APPROVE}\n```\n\n```\ndeny {ID}\n```"
    )
    assert lines_that_answer(said) == [APPROVE, f"deny {ID}"]


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize("dialect", [mrkdwn, plain, matrix_html])
def test_what_is_shown_can_not_leave_its_block_hide_or_link(dialect: object) -> None:
    assert callable(dialect)
    text = "Hi\n```\n[x](https://evil.example)\n*b* <!channel>\u202e\u200b\x1b\r"
    shown = dialect(notice(replace(ASKED, text=text)))
    assert "[x](https://evil.example)" in shown
    assert "\\u0060\\u0060\\u0060" in shown
    assert all(f"\\u{each}" in shown for each in ("202e", "200b", "001b", "000d"))
    assert not set(shown) & set("\u202e\u200b\x1b\r")
    assert "<!channel>" not in mrkdwn(notice(replace(ASKED, text=text)))


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    ("trust", "said"),
    [
        (None, ""),
        (Trust.OPERATOR, "nothing but what operators"),
        (Trust.MEMBER, "a member"),
        (Trust.CONTACT, "a contact"),
        (Trust.STRANGER, "a stranger"),
    ],
)
def test_its_taint_stands_there_in_words(trust: Trust | None, said: str) -> None:
    shown = notice(replace(ASKED, trust=trust))
    assert said in shown
    assert ("Whoever" in shown) is (trust is not None)


@pytest.mark.clause("B14.3")
def test_what_is_too_long_to_be_shown_is_not_approved_here() -> None:
    shown = notice(replace(ASKED, text="x" * (MOST_CHARS + 1)))
    assert lines_that_answer(shown) == [f"deny {ID}"]
    assert f"{MOST_CHARS + 1} characters" in shown
    assert f"upright requests show {ID}" in shown
    assert lines_that_answer(notice(replace(ASKED, text="x" * MOST_CHARS)))[0] == APPROVE


@pytest.mark.clause("B14.3")
def test_what_is_private_is_named_and_not_shown() -> None:
    shown = notice(replace(ASKED, is_private=True))
    assert "Fixed." not in shown
    assert lines_that_answer(shown) == []
    assert ID in shown


def test_a_question_is_shown_with_how_to_answer_it() -> None:
    asked = replace(ASKED, kind=RequestKind.QUESTION, to=None, text="Which?", item="")
    shown = notice(asked)
    assert shown.startswith(f"A question waits for you: {ID}")
    assert "```\nWhich?\n```" in shown
    assert lines_that_answer(shown) == [f"answer {ID} YOUR ANSWER"]


def test_a_finished_item_is_settled_elsewhere() -> None:
    shown = notice(replace(ASKED, kind=RequestKind.ACCEPTANCE, to=None, text="Is this done?"))
    assert lines_that_answer(shown) == []
    assert f"upright requests show {ID}" in shown
