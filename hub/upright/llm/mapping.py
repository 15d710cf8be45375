"""Mapping: transcript messages as the chat protocol's dictionaries, byte for byte the same always.

Each dictionary depends on its own message alone and has a fixed order of keys; so the JSON of a
longer transcript begins with the JSON of a shorter one, and a provider's prompt cache hits (B8.1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final, assert_never

from upright.core.material import tool_result
from upright.core.transcript import Message, Role, ToolCall, ToolSpec
from upright.engine.ports import Form, Rung

NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")
MAX_NAME_CHARS: Final = 64


def to_chat(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the ``messages`` of a request."""
    return [_message(message) for message in messages]


def to_tools(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return the ``tools`` of a request, in the order given."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in tools
    ]


def to_form(form: Form | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the keys, and the tool, by which a request asks for an answer in a shape."""
    if form is None or form.rung is Rung.PLAIN:
        return {}, []
    schema = dict(form.schema)
    match form.rung:
        case Rung.SCHEMA:
            named = {"name": form.name, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": named}}, []
        case Rung.JSON:
            return {"response_format": {"type": "json_object"}}, []
        case Rung.TOOL:
            chosen = {"type": "function", "function": {"name": form.name}}
            tool = ToolSpec(name=form.name, description="Give your answer.", parameters=schema)
            return {"tool_choice": chosen}, to_tools([tool])
        case _:
            assert_never(form.rung)


def _message(message: Message) -> dict[str, Any]:
    match message.role:
        case Role.TOOL:
            content = tool_result(message.text)
            return {"role": "tool", "tool_call_id": message.call_id, "content": content}
        case Role.ASSISTANT if message.calls:
            return {
                "role": "assistant",
                "content": message.text or None,
                "tool_calls": [_call(call) for call in message.calls],
            }
        case Role.SYSTEM | Role.USER | Role.ASSISTANT:
            return {"role": message.role.value, "content": message.text}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": _name(call.name), "arguments": _arguments(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _name(name: str) -> str:
    """Make an invented name one that a strict endpoint takes back in the history."""
    return NOT_IN_A_NAME.sub("_", name)[:MAX_NAME_CHARS] or "unnamed"


def _arguments(text: str) -> str:
    """Wrap what is no JSON object: some servers parse the history and refuse the request for it."""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    return text if isinstance(parsed, dict) else json.dumps({"unparsable": text})
