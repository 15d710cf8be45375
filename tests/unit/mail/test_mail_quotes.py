"""Quotes: what the writer added; answers between the lines, and nothing that others wrote."""

from __future__ import annotations

import pytest

from fixtures.mail import mail, told
from upright_mail.quotes import own_words


@pytest.mark.feature("mail.stripping")
def test_both_texts_are_kept() -> None:
    said = "Yes.\n\nOn Mon, 1 Jun 2026 at 09:00, Hub wrote:\n> Shall we?"
    content = told(mail(said)).content
    assert content.text == "Yes."
    assert content.full == said
    assert told(mail("Yes.")).content.full == ""


@pytest.mark.feature("mail.stripping")
@pytest.mark.parametrize(
    ("said", "own"),
    [
        ("On 3 May we wrote:\na list of things", "On 3 May we wrote:\na list of things"),
        ("> Shall we?\nYes.\n> When?\nAt 5.", "> Shall we?\nYes.\n> When?\nAt 5."),
        ("Fine.\n> Shall we?\nYes.\n> When?\nAt 5.", "Fine.\n> Shall we?\nYes.\n> When?\nAt 5."),
        ("a\n" + "> q\n" * 9 + "Yes.", "a\n> […]\n" + "> q\n" * 6 + "Yes."),
        ("Yes.\n\n-- \nAnn\nExample Inc.", "Yes."),
        ("Yes.\n\nVon meinem iPhone gesendet", "Yes."),
        ("From: me to you\nHello", "From: me to you\nHello"),
        ("> only quoted", "> only quoted"),
        ("Yes.\n\n-----Original Message-----\nFrom: Hub\nShall we?", "Yes."),
        ("a\n\n\n\n\nb", "a\n\n\n\n\nb"),
    ],
)
def test_own_words(said: str, own: str) -> None:
    assert own_words(said).replace("\n\n\n", "\n\n") == own.replace("\n\n\n\n\n", "\n\n")
