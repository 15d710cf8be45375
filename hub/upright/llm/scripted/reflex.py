"""Reflex: what an endpoint does whatever its script says: shapes, and what it can't do at all.

A request for an answer in a shape gets one that fits: an instance made of the schema. A server that
lacks something refuses what asks for it, in the words that real ones use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from upright.llm.scripted.decide import Answer, MadeCall
from upright.llm.scripted.found import objects_in
from upright.llm.scripted.view import content_of

LACKS: Final[Mapping[str, str]] = {
    "streaming": "stream=true is not supported by this model",
    "tools": "tools are not supported by this model",
    "forced_tool": "tool_choice: only auto is supported",
    "schema": "response_format of type json_schema is not supported",
    "json": "response_format of type json_object is not supported",
    "parallel": "",
    "usage": "",
    "cached": "",
}
"""What a server may lack, and how it says so; an empty sentence: it does less, and says nothing."""
TWICE: Final = re.compile(r"Use the tool (\w+) twice")
OF_TYPE: Final[Mapping[str, Any]] = {
    "string": "hello",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "null": None,
}


def refusal(body: Mapping[str, Any], lacks: Collection[str]) -> str:
    """Say what a request asks for that this server can't do; empty: it can."""
    form = (body.get("response_format") or {}).get("type")
    asked = {
        "streaming": bool(body.get("stream")),
        "tools": bool(body.get("tools")),
        "forced_tool": isinstance(body.get("tool_choice"), dict),
        "schema": form == "json_schema",
        "json": form == "json_object",
    }
    return next((LACKS[name] for name, is_asked in asked.items() if is_asked and name in lacks), "")


def shaped(body: Mapping[str, Any], answer: Answer, lacks: Collection[str]) -> Answer:
    """Bring an answer into the shape that was asked for, where one was."""
    choice, form = body.get("tool_choice"), body.get("response_format")
    if isinstance(choice, dict):
        return replace(answer, text="", calls=_calls(body, choice["function"]["name"], times=1))
    if form and not _is_object(answer.text):
        made = json.dumps(_instance(_schema(body, form)), ensure_ascii=False)
        return replace(answer, text=made, calls=())
    twice = TWICE.search(content_of((body.get("messages") or [{}])[-1]))
    if twice and not answer.rule:
        times = 1 if "parallel" in lacks else 2
        return replace(answer, text="", calls=_calls(body, twice[1], times=times))
    return answer


def _calls(body: Mapping[str, Any], name: str, *, times: int) -> tuple[MadeCall, ...]:
    tools: Sequence[Mapping[str, Any]] = [tool["function"] for tool in body.get("tools") or ()]
    schema: Mapping[str, Any] = next(
        (tool.get("parameters", {}) for tool in tools if tool["name"] == name), {}
    )
    arguments = json.dumps(_instance(schema), ensure_ascii=False)
    return tuple(MadeCall(id=f"call_{n}", name=name, arguments=arguments) for n in range(times))


def _schema(body: Mapping[str, Any], form: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a request; without one what its last message describes."""
    named = form.get("json_schema")
    if isinstance(named, dict):
        schema: Mapping[str, Any] = named.get("schema", {})
        return schema
    told = next(iter(objects_in(content_of(body["messages"][-1]))), {})
    if told.get("type") == "object":
        return told
    return {"type": "object", "properties": {name: {"const": told[name]} for name in told}}


def _instance(schema: Mapping[str, Any]) -> object:
    """Make something that fits a schema: every property, one item, the first of several words."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: _instance(one) for name, one in schema.get("properties", {}).items()}
    if kind == "array":
        return [_instance(schema.get("items", {}))]
    return OF_TYPE.get(kind)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
