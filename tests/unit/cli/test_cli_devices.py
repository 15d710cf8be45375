"""Devices on the command line: what a person sees of one, and what they say of it."""

from __future__ import annotations

import pytest

from fixtures.cli_hub import Served, Terminal


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("device ls", ["dv_box", "box", "online", "OWNER", "/src/app (x/app)", "0+0"]),
        ("device show dv", ["name: box", "/src/app (x/app)", "foreign", "commands", "shared_with"]),
    ],
)
def test_people_see_where_a_repository_is(
    served: Served, upright: Terminal, command: str, words: list[str]
) -> None:
    typed = upright(*command.split())
    assert typed.code == 0, typed.err
    for word in words:
        assert word in typed.out


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("device share dv --with ann", (("share", "dv_box", "ann"), "runs ann's items, too")),
        ("device unshare dv --with ann", (("unshare", "dv_box", "ann"), "runs none of ann's")),
        ("device rename dv lap", (("rename", "dv_box", "lap"), "dv_box is called lap")),
        ("work move wk_f --to dv_box", (("move", "wk_fix", "dv_box"), "wk_fix goes on at dv_box")),
    ],
)
def test_what_is_said_of_a_device_reaches_the_hub(
    served: Served, upright: Terminal, command: str, expected: tuple[tuple[str, ...], str]
) -> None:
    did, says = expected
    typed = upright(*command.split())
    assert typed.code == 0, typed.err
    assert says in typed.out
    assert served.behind.asked == [did]


def test_a_device_is_json_for_programs(served: Served, upright: Terminal) -> None:
    shown = upright("device", "show", "dv", "--json").json()
    assert (shown["commands"], shown["questions"], shown["has_files"]) == ([], [], False)
    assert "public_key" not in shown
