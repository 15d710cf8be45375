from __future__ import annotations

import pytest

from fixtures.still_hub import CODE, trigger
from upright.core.mandate import Trust
from upright.core.memory import (
    MAX_CUE,
    MAX_SOURCES,
    Memory,
    MemoryKind,
    cue,
    found,
    joined,
    terms,
)


def memory(
    name: str, text: str, at_ms: int = 1, *, known: str = "", sources: tuple[str, ...] = ("tr_1",)
) -> Memory:
    return Memory(
        id=name,
        kind=MemoryKind.SAID,
        cue=known,
        text=text,
        sources=sources,
        author="router",
        trust=Trust.MEMBER,
        times=1,
        at_ms=at_ms,
    )


@pytest.mark.clause("B5.4")
def test_a_kind_of_trigger_is_its_source_its_kind_and_its_repository() -> None:
    assert cue("gh", trigger("ci.failed", code=CODE)) == "gh ci.failed acme/app"
    assert cue("mail", trigger("mail.received", code=None)) == "mail mail.received"
    assert len(cue("s" * 300, trigger())) == MAX_CUE


def test_sources_are_kept_once_each_the_newest_last() -> None:
    assert joined(("a", "b"), ("c", "a")) == ("b", "c", "a")
    many = tuple(f"s{n}" for n in range(MAX_SOURCES))
    assert joined(many, ("new",)) == (*many[1:], "new")


def test_words_are_compared_in_small_letters_and_chinese_signs_one_by_one() -> None:
    assert terms("Ann owns CI") == {"ann", "owns", "ci"}
    assert terms("部署失败 tr_1") == {"部", "署", "失", "败", "tr_1"}


@pytest.mark.clause("B5.4")
def test_a_question_finds_what_shares_most_words_then_what_is_newest() -> None:
    one = memory("mm_1", "Ann owns the mail server", 1)
    two = memory("mm_2", "Ann is away", 2)
    three = memory("mm_3", "red builds are the developer's", 3, known="gh ci.failed acme/app")
    known = [one, two, three]
    assert found(known, "who owns mail? ann?", 5) == (one, two)
    assert found(known, "failed", 5) == (three,)
    assert found(known, "mm_2", 5) == (two,)
    assert found(known, "", 2) == (three, two)
    assert found(known, "nothing of it", 5) == ()


def test_what_a_memory_is_known_from_finds_it() -> None:
    one = memory("mm_1", "x", sources=("wk_7",))
    assert found([one, memory("mm_2", "y")], "wk_7", 5) == (one,)
