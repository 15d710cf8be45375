"""Messages as the chat protocol's dictionaries."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.core.transcript import Message, Role, ToolCall, ToolSpec
from upright.llm.mapping import to_chat, to_tools

CALLS = st.builds(ToolCall, id=st.text(), name=st.text(), arguments=st.text() | st.just("{}"))
MESSAGES = st.lists(
    st.one_of(
        st.builds(Message, role=st.sampled_from([Role.SYSTEM, Role.USER]), text=st.text()),
        st.builds(
            Message,
            role=st.just(Role.ASSISTANT),
            text=st.text(),
            calls=st.lists(CALLS, max_size=2).map(tuple),
        ),
        st.builds(Message, role=st.just(Role.TOOL), text=st.text(), call_id=st.text()),
    )
)


@given(MESSAGES)
@pytest.mark.clause("B8.1")
def test_the_json_of_each_step_is_a_prefix_of_the_next_ones(messages: list[Message]) -> None:
    texts = [json.dumps(to_chat(messages[:n])) for n in range(1, len(messages) + 1)]
    assert all(b.startswith(a[:-1]) for a, b in itertools.pairwise(texts))


def test_each_role_has_its_form() -> None:
    call = ToolCall(id="c1", name="run", arguments='{"argv":["ls"]}')
    assert to_chat(
        [
            Message(role=Role.SYSTEM, text="s"),
            Message(role=Role.USER, text="u"),
            Message(role=Role.ASSISTANT, text="a"),
            Message(role=Role.ASSISTANT, calls=(call,)),
            Message(role=Role.TOOL, text="{}", call_id="c1"),
        ]
    ) == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "a"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "run", "arguments": '{"argv":["ls"]}'},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": '<material of="tool result">\n{}\n</material>',
        },
    ]


@given(CALLS)
def test_what_a_strict_endpoint_would_refuse_in_the_history_is_wrapped(call: ToolCall) -> None:
    (message,) = to_chat([Message(role=Role.ASSISTANT, calls=(call,))])
    function = message["tool_calls"][0]["function"]
    assert isinstance(json.loads(function["arguments"]), dict)
    assert function["name"].replace("_", "a").replace("-", "a").isalnum()
    assert len(function["name"]) <= 64


def test_arguments_that_are_an_object_stay_as_the_model_wrote_them() -> None:
    call = ToolCall(id="c", name="run", arguments='{ "argv" : [] }')
    (message,) = to_chat([Message(role=Role.ASSISTANT, calls=(call,))])
    assert message["tool_calls"][0]["function"]["arguments"] == call.arguments


def test_tools_keep_their_order_and_schema() -> None:
    specs = [ToolSpec(name=n, description=f"{n}.", parameters={"type": "object"}) for n in "ba"]
    assert [tool["function"] for tool in to_tools(specs)] == [
        {"name": "b", "description": "b.", "parameters": {"type": "object"}},
        {"name": "a", "description": "a.", "parameters": {"type": "object"}},
    ]
