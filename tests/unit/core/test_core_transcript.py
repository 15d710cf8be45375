from __future__ import annotations

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.core.errors import TranscriptError
from upright.core.transcript import (
    Message,
    Role,
    ToolCall,
    ToolSpec,
    before_open_calls,
    check,
    decode,
    encode,
    unanswered,
)

TEXT: Final = st.text()  # Hypothesis makes no lone surrogates of it: they have no UTF-8
CALLS: Final = st.builds(ToolCall, id=TEXT, name=TEXT, arguments=TEXT)
MESSAGES: Final = st.builds(
    Message,
    role=st.sampled_from(Role),
    text=TEXT,
    calls=st.lists(CALLS, max_size=3).map(tuple),
    call_id=TEXT,
)


def asks(*ids: str) -> Message:
    calls = tuple(ToolCall(id=one, name="run", arguments="{}") for one in ids)
    return Message(role=Role.ASSISTANT, calls=calls)


def answers(call_id: str) -> Message:
    return Message(role=Role.TOOL, text="done", call_id=call_id)


# ------------------------------------------------------------------ the stored form
@pytest.mark.clause("B8.1")
@given(message=MESSAGES)
def test_a_message_comes_back_as_it_was_written(message: Message) -> None:
    assert decode(encode(message)) == message
    assert decode(encode(message).encode().decode()) == message


@pytest.mark.clause("B8.1")
@given(message=MESSAGES)
def test_reading_and_writing_again_changes_no_byte(message: Message) -> None:
    assert encode(decode(encode(message))) == encode(message)


@given(one=MESSAGES, other=MESSAGES)
def test_different_messages_have_different_forms(one: Message, other: Message) -> None:
    assert (encode(one) == encode(other)) is (one == other)


@given(message=MESSAGES)
def test_a_stored_message_is_one_line_of_json(message: Message) -> None:
    assert "\n" not in encode(message)
    assert isinstance(json.loads(encode(message)), dict)


@pytest.mark.clause("B8.1")
@given(before=st.lists(MESSAGES, max_size=4), later=st.lists(MESSAGES, max_size=4))
def test_what_is_appended_leaves_every_earlier_byte_alone(
    before: list[Message], later: list[Message]
) -> None:
    rendered = "".join(encode(message) + "\n" for message in before).encode()
    longer = "".join(encode(message) + "\n" for message in [*before, *later]).encode()
    assert longer.startswith(rendered)


def test_the_form_is_canonical_and_leaves_out_what_is_empty() -> None:
    assert encode(Message(role=Role.USER, text="grüß 🦉")) == '{"role":"user","text":"grüß 🦉"}'
    assert encode(asks("c1")) == ('{"calls":[["c1","run","{}"]],"role":"assistant","text":""}')
    assert encode(answers("c1")) == '{"call_id":"c1","role":"tool","text":"done"}'


@pytest.mark.parametrize("text", ["{", '{"role":"robot","text":""}'], ids=["torn", "role"])
def test_what_was_never_written_here_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|robot"):
        decode(text)


def test_a_tool_is_told_by_name_description_and_schema() -> None:
    spec = ToolSpec(name="run", description="Run it", parameters={"type": "object"})
    assert (spec.name, spec.description, spec.parameters) == ("run", "Run it", {"type": "object"})


# ------------------------------------------------------------------ calls and answers
@pytest.mark.clause("B8.2")
def test_calls_without_an_answer_are_open_in_the_order_in_which_they_were_made() -> None:
    said = [asks("c1", "c2"), answers("c2"), asks("c3")]
    assert [call.id for call in unanswered(said)] == ["c1", "c3"]


def test_only_a_tool_message_answers_a_call() -> None:
    said = [asks("c1"), Message(role=Role.USER, text="c1", call_id="c1")]
    assert [call.id for call in unanswered(said)] == ["c1"]


def test_nothing_said_leaves_nothing_open() -> None:
    assert unanswered([]) == ()


@pytest.mark.clause("B8.2")
@pytest.mark.parametrize(
    "said",
    [
        [],
        [asks("c1")],
        [asks("c1", "c2"), answers("c2"), answers("c1")],
        [asks("c1"), answers("c1"), asks("c2"), answers("c2")],
    ],
    ids=["empty", "open", "any order", "twice"],
)
def test_at_most_one_answer_to_each_call_is_in_order(said: list[Message]) -> None:
    check(said)


@pytest.mark.clause("B8.2")
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ([answers("c1")], "answered out of turn"),
        ([answers("c1"), asks("c1")], "answered out of turn"),
        ([asks("c1"), answers("c1"), answers("c1")], "answered out of turn"),
        ([asks("c1"), answers("c2")], "answered out of turn"),
        ([asks("c1", "c1")], "made twice"),
        ([asks("c1"), answers("c1"), asks("c1")], "made twice"),
    ],
    ids=["no call", "before", "twice", "another", "same id", "id again"],
)
def test_an_answer_out_of_turn_or_a_call_made_twice_is_refused(
    said: list[Message], problem: str
) -> None:
    with pytest.raises(TranscriptError) as refused:
        check(said)
    assert refused.value.data["problem"] == problem


@pytest.mark.clause("B9.5")
def test_what_stands_before_open_calls_is_a_prompt_of_its_own() -> None:
    user = Message(role=Role.USER, text="what came")
    settled = (user, asks("a"), answers("a"))
    assert before_open_calls(settled) == settled
    under_way = (*settled, asks("b", "c"), answers("c"))
    assert before_open_calls(under_way) == settled
    assert unanswered(before_open_calls(under_way)) == ()
