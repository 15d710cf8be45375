"""The cache's accounts, and the queue of faults."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.llm.scripted.cache import Prompt, PromptCache, conversation_of, prompt_of
from upright.llm.scripted.faults import MAX_SILENCE_S, FaultKind, Faults, parse_faults

PIECES = st.lists(st.binary(min_size=1, max_size=4), max_size=5).map(tuple)


@given(PIECES, PIECES)
def test_the_common_bytes_with_the_prompt_before_are_counted_exactly(
    one: tuple[bytes, ...], other: tuple[bytes, ...]
) -> None:
    cache = PromptCache()
    cache.look_up("c", Prompt(pieces=one))
    hit = cache.look_up("c", Prompt(pieces=other))
    a, b = b"".join(one), b"".join(other)
    shared = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    assert hit.cached_bytes == (min(len(a), len(b)) if shared is None else shared)
    assert hit.bust is not b.startswith(a)


def test_older_prompts_count_at_message_boundaries() -> None:
    cache = PromptCache()
    for pieces in ((b"system", b"long history"), (b"other",)):
        cache.look_up("c", Prompt(pieces=pieces))
    hit = cache.look_up("c", Prompt(pieces=(b"system", b"long history", b"new")))
    assert (hit.cached_bytes, hit.bust) == (18, True)


def test_conversations_share_nothing() -> None:
    cache = PromptCache()
    cache.look_up("a", Prompt(pieces=(b"same",)))
    assert cache.look_up("b", Prompt(pieces=(b"same",))).cached_bytes == 0


def test_a_conversation_without_a_session_is_known_by_how_it_begins() -> None:
    asked = [{"role": "user", "content": "u"}]
    body: dict[str, Any] = {"messages": asked}
    longer = {"messages": [*asked, {"role": "assistant"}, {"role": "user", "content": "v"}]}
    other = {"messages": [{"role": "user", "content": "t"}]}
    assert conversation_of(body, "") == conversation_of(longer, "") != conversation_of(other, "")
    assert conversation_of(body, "se_1") == "se_1"


def test_the_tools_stand_before_the_messages() -> None:
    pieces = prompt_of({"messages": [{"role": "user"}], "tools": [{"a": 1}]}).pieces
    assert pieces == (b'[{"a":1}]\n', b'{"role":"user"}\n')


def test_tokens_are_four_bytes_each() -> None:
    hit = PromptCache().look_up("c", Prompt(pieces=(b"12345",)))
    assert (hit.prompt_tokens, hit.cached_tokens) == (2, 0)


def test_faults_are_met_in_order_one_a_call_by_whom_they_are_for() -> None:
    faults = Faults()
    rows: list[dict[str, Any]] = [
        {"kind": "cut", "agent": "worker"},
        {"kind": "refusal", "calls": 2},
    ]
    faults.add(parse_faults(rows))
    assert faults.pending() == 3
    met = [faults.take(agent) for agent in ("router", "worker", "router", "router")]
    kinds = [fault.kind if fault else None for fault in met]
    assert kinds == [FaultKind.REFUSAL, FaultKind.CUT, FaultKind.REFUSAL, None]


def test_faults_can_be_taken_back() -> None:
    faults = Faults()
    faults.add(parse_faults({"kind": "cut", "calls": 9}))
    faults.clear()
    assert faults.take("worker") is None


@pytest.mark.parametrize(
    "row",
    [
        {},
        "cut",
        None,
        {"kind": "gremlin"},
        {"kind": "cut", "call": 1},
        {"kind": "cut", "seconds": "x"},
    ],
)
def test_a_fault_that_is_wrong_is_refused(row: object) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_faults(row)


def test_no_silence_is_endless() -> None:
    (fault,) = parse_faults({"kind": "silence", "seconds": 1e9})
    assert fault.seconds == MAX_SILENCE_S
