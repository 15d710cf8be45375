"""Transcript: an append-only list of messages; what the model is sent is exactly that list.

An entry's message is final when it is appended, so the rendered prompt of one step is a byte
prefix of the next one's (B8.1), over restarts and moves, with nothing to recompute.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from upright.core.errors import TranscriptError


class Role(StrEnum):
    """Who speaks, as the chat protocol names it."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call of the model: its id, the tool's name, the arguments as the text it wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the prompt. ``calls`` only with ASSISTANT, ``call_id`` only with TOOL."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model is told of it; ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


def encode(message: Message) -> str:
    """Write a message as canonical JSON: the form that is stored, and compared byte by byte."""
    body: dict[str, Any] = {"role": message.role.value, "text": message.text}
    if message.calls:
        body["calls"] = [[call.id, call.name, call.arguments] for call in message.calls]
    if message.call_id:
        body["call_id"] = message.call_id
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def decode(text: str) -> Message:
    """Read what :func:`encode` wrote."""
    body = json.loads(text)
    calls = tuple(ToolCall(id=i, name=n, arguments=a) for i, n, a in body.get("calls", ()))
    return Message(
        role=Role(body["role"]),
        text=body["text"],
        calls=calls,
        call_id=body.get("call_id", ""),
    )


def unanswered(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls without a tool message yet, in the order in which they were made."""
    answered = {message.call_id for message in messages if message.role is Role.TOOL}
    return tuple(call for message in messages for call in message.calls if call.id not in answered)


def before_open_calls(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return what stands before the step that is under way; all of it at a safe point."""
    waiting = {call.id for call in unanswered(messages)}
    for n, message in enumerate(messages):
        if any(call.id in waiting for call in message.calls):
            return tuple(messages[:n])
    return tuple(messages)


def check(messages: Iterable[Message]) -> None:
    """Raise TranscriptError unless every call has at most one answer, after it (B8.2)."""
    made: set[str] = set()
    answered: set[str] = set()
    for message in messages:
        for call in message.calls:
            if call.id in made:
                raise TranscriptError(call_id=call.id, problem="made twice")
            made.add(call.id)
        if message.role is Role.TOOL:
            if message.call_id not in made or message.call_id in answered:
                raise TranscriptError(call_id=message.call_id, problem="answered out of turn")
            answered.add(message.call_id)
