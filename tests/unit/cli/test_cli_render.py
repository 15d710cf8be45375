"""Rendering: foreign text can't steer a terminal, and columns stay columns."""

from __future__ import annotations

import click
import pytest

from upright.cli import render


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jgone", "\ufffd[2Jgone"),
        ("a\nb\tc", "a b c"),
        ("abc\u202egnp.exe", "abc\ufffdgnp.exe"),
        ("\x9b31m", "\ufffd31m"),
        ("emoji 🎉 ü", "emoji 🎉 ü"),
        (None, ""),
    ],
)
def test_control_and_direction_characters_are_visible(text: object, shown: str) -> None:
    assert render.safe(text) == shown


def test_text_of_several_lines_keeps_them() -> None:
    assert render.safe("a\nb\x00", lines=True) == "a\nb\ufffd"


@pytest.mark.parametrize(
    ("ago_ms", "shown"),
    [(0, "0s"), (59_999, "59s"), (60_000, "1m"), (7_200_000, "2h"), (90_000_000, "1d"), (-5, "0s")],
)
def test_ages_are_one_number_and_a_unit(ago_ms: int, shown: str) -> None:
    assert render.age(10**12 - ago_ms, 10**12) == shown


def test_a_time_that_never_was_is_said() -> None:
    assert render.age(None, 1) == "never"
    assert render.clock(None) == render.day(None) == "-"


def test_columns_line_up_with_colours_and_wide_letters(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"state": "failed", "title": "日本"}, {"state": "ok", "title": "\x1b[31mred"}]
    columns: tuple[render.Column, ...] = (
        ("TITLE", lambda row: row["title"]),
        ("STATE", lambda row: render.state(row["state"])),
    )
    render.emit_table(rows, columns, empty="")
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["TITLE     STATE", "日本      failed", "\ufffd[31mred  ok"]


def test_an_empty_table_says_so_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    render.emit_table([], (("A", str),), empty="Nothing.")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "Nothing.\n")


def test_a_state_is_a_word_with_or_without_its_colour() -> None:
    assert click.unstyle(render.state("waiting_external")) == "waiting_external"
    assert render.state("waiting_external").startswith("\x1b[33m")


def test_unknown_prices_are_not_shown_as_nothing() -> None:
    costs = {"calls": 1, "tokens_input": 1, "tokens_cached": 0, "tokens_output": 1, "unpriced": 1}
    assert render.money({**costs, "usd_micros": None}).endswith("price unknown")
    assert render.money({**costs, "usd_micros": 25_000}).endswith("$0.0250 + 1 unpriced")
