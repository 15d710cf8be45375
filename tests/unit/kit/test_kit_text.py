"""One Markdown source: plain, Slack's mrkdwn, Matrix's HTML, and parts that fit."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.kit.dialects import matrix_html, mrkdwn, plain
from upright.kit.splitting import split, utf16_units

VOID: Final = frozenset({"br", "hr"})
WORDS: Final = """
    ` ``` ```py ~~~ ** * _ ~~ [ ] ( ) ](http://example.org/a_b) < > & <!channel> word @room
    😊 é 漢字 | |---| \\ <script> https://example.org/x?a=1&b=2 ---
"""
BLANKS: Final = ("# ", "- ", "1. ", "> ", "\n", "\n\n", " ", "    ")
PIECES: Final = st.sampled_from((*WORDS.split(), *BLANKS))
TEXTS: Final = st.lists(PIECES, max_size=60).map("".join)


class Balance(HTMLParser):
    """Fails when a tag is closed that is not the last one open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.feature("chat.markdown")
def test_the_marks_of_each_service_are_its_own() -> None:
    source = "**bold**, *em*, ~~gone~~, `a < b` and [the fix](https://example.org/1?a=1&b=2)."
    assert mrkdwn(source) == (
        "*bold*, _em_, ~gone~, `a &lt; b` and <https://example.org/1?a=1&amp;b=2|the fix>."
    )
    assert matrix_html(source) == (
        "<p><strong>bold</strong>, <em>em</em>, <del>gone</del>, <code>a &lt; b</code> and "
        '<a href="https://example.org/1?a=1&amp;b=2">the fix</a>.</p>'
    )
    assert plain(source) == "bold, em, gone, a < b and the fix (https://example.org/1?a=1&b=2)."


def test_blocks_of_each_service() -> None:
    source = "# Why\n\nIt broke:\n\n```py\nif a < b:\n    pass\n```\n\n"
    source += "> said\n> twice\n\n1. one\n   - deep\n2. two"
    assert mrkdwn(source).split("\n\n") == [
        "*Why*",
        "It broke:",
        "```\nif a &lt; b:\n    pass\n```",
        "> said\n> twice",
        "1. one\n    • deep\n2. two",
    ]
    assert matrix_html(source) == (
        "<h1>Why</h1><p>It broke:</p>"
        '<pre><code class="language-py">if a &lt; b:\n    pass\n</code></pre>'
        "<blockquote><p>said<br>twice</p></blockquote>"
        "<ol><li>one<ul><li>deep</li></ul></li><li>two</li></ol>"
    )
    assert plain(source).startswith("Why\n\nIt broke:\n\nif a < b:\n    pass\n\n> said")


def test_a_bare_address_leaves_the_sentences_end_alone() -> None:
    assert mrkdwn("See https://example.org/a_b_c.") == "See <https://example.org/a_b_c>."
    assert plain("See https://example.org/a.") == "See https://example.org/a."


def test_no_text_mentions_everybody_at_slack() -> None:
    assert mrkdwn("<!channel> <@U0EVE0001> hi") == "&lt;!channel&gt; &lt;@U0EVE0001&gt; hi"
    assert "<!channel" not in mrkdwn("`<!channel>` [<!channel|x>](https://example.org)")


def test_an_address_that_runs_code_is_no_link() -> None:
    assert matrix_html("[x](javascript:alert)") == "<p>x (javascript:alert)</p>"


def test_a_table_stays_a_table_to_the_eye() -> None:
    assert mrkdwn("|a|b|\n|-|-|\n|1|2|") == "```\n|a|b|\n|-|-|\n|1|2|\n```"


@given(TEXTS)
def test_no_text_makes_html_that_is_not_closed_or_not_allowed(text: str) -> None:
    parser = Balance()
    parser.feed(matrix_html(text))
    parser.close()
    assert parser.open == []
    assert "script" not in parser.seen


@given(TEXTS)
def test_no_text_makes_a_mention_at_slack(text: str) -> None:
    assert not re.search(r"<[!@#]", mrkdwn(text))
    plain(text)


# ------------------------------------------------------------------ splitting
def test_a_text_that_fits_is_one_part() -> None:
    assert split("a\n\nb", 100) == ("a\n\nb",)
    assert split("  \n\n", 100) == ()


def test_it_is_cut_between_paragraphs() -> None:
    assert split("aaaa\n\nbbbb\n\ncccc", 11) == ("aaaa\n\nbbbb", "cccc")


def test_a_long_paragraph_is_cut_at_lines_then_at_blanks() -> None:
    assert split("one two three four", 10) == ("one two", "three four")
    assert split("one two\nthree four", 12) == ("one two", "three four")


@pytest.mark.feature("chat.markdown")
@pytest.mark.case("TB/374")
def test_a_fence_is_closed_and_opened_anew_within_the_limit() -> None:
    code = "\n".join(f"line {n}" for n in range(20))
    parts = split(f"Look:\n\n```py\n{code}\n```\n\nDone.", 60)
    assert all(len(part) <= 60 for part in parts)
    fenced = [part for part in parts if "```" in part]
    assert all(part.startswith("```py\n") and "\n```" in part for part in fenced[0:2])
    assert "\n".join(re.findall(r"line \d+", "\n".join(parts))) == code


@pytest.mark.case("TB/374")
def test_the_limit_is_the_services_own_measure() -> None:
    parts = split("😊" * 10, 8, utf16_units)
    assert [utf16_units(part) for part in parts] == [8, 8, 4]


def test_an_emoji_of_several_is_not_torn() -> None:
    family = "👩\N{ZERO WIDTH JOINER}👧"
    assert split(f"aa{family}", 4) == ("aa", family)


def test_a_limit_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        split("abc", 0)


@given(TEXTS, st.integers(min_value=20, max_value=80))
def test_nothing_is_lost_and_every_part_fits(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert all(len(part) <= limit for part in parts)
    bare = re.compile(r"[`~\s]")  # fences are closed and opened anew, with their language
    left = iter(bare.sub("", "".join(parts)))
    assert all(one in left for one in bare.sub("", text))
