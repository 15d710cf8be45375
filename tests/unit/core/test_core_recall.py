"""Recall: one shape for everything, in one order, a page at a time (B7.1, B7.2)."""

from __future__ import annotations

import pytest

from upright.core.mandate import Trust
from upright.core.recall import (
    NEAR_CHARS,
    PAGE_CHARS,
    SUMMARY_CHARS,
    Beside,
    Edge,
    Shown,
    edges,
    one_line,
    page,
)

THREAD = Shown(
    id="th_1",
    kind="thread",
    summary="a\npull  request",
    facts={"source": "gh"},
    relatives=(Edge(what="linked", id="th_2"), Edge(what="linked", id="th_3")),
    nearby=(Beside(id="tr_1", by="Ann", text="x" * 80),),
    text="0123456789",
    part="",
    parts=("raw",),
    trust=Trust.MEMBER,
    pruned="pruned on 2026-06-01",
)


@pytest.mark.clause("B7.1", "B7.2")
def test_an_object_is_shown_with_its_relatives_before_what_is_near_before_its_text() -> None:
    told = page(THREAD)
    assert list(told) == [
        *("id", "kind", "trust", "summary", "source", "relatives", "nearby", "parts", "pruned"),
        "text",
    ]
    assert told["summary"] == "a pull request"
    assert told["relatives"] == {"linked": ["th_2", "th_3"]}
    assert told["nearby"] == [{"id": "tr_1", "by": "Ann", "text": "x" * NEAR_CHARS}]
    assert (told["trust"], told["text"]) == ("member", "0123456789")


@pytest.mark.clause("B7.1", "B7.3")
def test_a_longer_text_says_where_to_read_on_until_it_is_read() -> None:
    first = page(THREAD, chars=4)
    assert (first["text"], first["total"], first["read_on_at"]) == ("0123", 10, 4)
    later = page(THREAD, first["read_on_at"], chars=4)
    assert later == {
        "id": "th_1",
        "kind": "thread",
        "trust": "member",
        "offset": 4,
        "text": "4567",
        "total": 10,
        "read_on_at": 8,
    }
    assert page(THREAD, 8, chars=4) == {
        "id": "th_1",
        "kind": "thread",
        "trust": "member",
        "offset": 8,
        "text": "89",
    }
    assert page(THREAD, 99)["text"] == ""


@pytest.mark.clause("B7.3")
def test_a_page_ends_between_characters() -> None:
    text = "x" * (PAGE_CHARS - 1) + "\U0001f468\u200d\U0001f469" + "y"
    shown = Shown(id="tr_1", kind="trigger", summary="", text=text, part="raw")
    first = page(shown)
    later = page(shown, first["read_on_at"])
    assert (first["read_on_at"], later["part"]) == (PAGE_CHARS - 1, "raw")
    assert first["text"] + later["text"] == text
    assert first["part"] == "raw"


def test_a_summary_is_one_line_and_what_is_no_id_is_no_edge() -> None:
    assert one_line("a\n b\t c" + "d" * 500) == ("a b c" + "d" * 500)[:SUMMARY_CHARS]
    assert edges("of", ["x", None, "", "x", "y"]) == (
        Edge(what="of", id="x"),
        Edge(what="of", id="y"),
    )
