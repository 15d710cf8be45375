"""Structured: an answer in a shape, by the surest rung of a ladder that the endpoint stands on.

A schema, JSON, a tool that must be called, plain words: a rung that the endpoint refuses is left
for the next one, for good. An answer that does not fit is repaired once, then it is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from upright.core.transcript import Message, Role
from upright.engine.ports import (
    ChatModel,
    ChatReply,
    ChatRequest,
    Form,
    ModelRequestError,
    ModelShapeError,
    Rung,
    Shape,
    Shaped,
)
from upright.llm.abilities import FORCED, JSON, SCHEMA, TOOLS
from upright.llm.roles import Roles

T = TypeVar("T")
LADDER: Final = (Rung.SCHEMA, Rung.JSON, Rung.TOOL, Rung.PLAIN)
ABILITY: Final[Mapping[Rung, str]] = MappingProxyType(
    {Rung.SCHEMA: SCHEMA, Rung.JSON: JSON, Rung.TOOL: FORCED}
)
FENCED: Final = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bad:
    """What did not fit, and why."""

    said: str
    problem: str


class Ladder:
    """Implements ``engine.ports.Structured``; *model* is asked, *roles* know what can be asked."""

    def __init__(self, model: ChatModel, roles: Roles) -> None:
        self._model = model
        self._roles = roles

    async def ask(self, request: ChatRequest, shape: Shape[T]) -> Shaped[T]:
        """Return an answer in the shape; see ``engine.ports.Structured``."""
        rung, first = await self._climb(request, shape)
        found = _parsed(first, shape)
        if not isinstance(found, _Bad):
            return Shaped(value=found, rung=rung, replies=(first,))
        second = await self._once(_repairing(request, found), shape, rung)
        again = _parsed(second, shape)
        if isinstance(again, _Bad):
            raise ModelShapeError(again.problem, (first, second))
        return Shaped(value=again, rung=rung, replies=(first, second))

    async def _climb(self, request: ChatRequest, shape: Shape[T]) -> tuple[Rung, ChatReply]:
        """Ask by the first rung that the endpoint does not refuse; what it refuses is learned."""
        known = self._roles.endpoint(request.role).abilities
        for rung in LADDER:
            ability = ABILITY.get(rung, "")
            no_tools = rung is Rung.TOOL and known.has(TOOLS) is False
            if known.has(ability) is False or no_tools:
                continue
            try:
                return rung, await self._once(request, shape, rung)
            except ModelRequestError:
                if rung is Rung.PLAIN:
                    raise  # it is the request itself
                known.learn(ability, has=False)
        reason = "the model takes no request at all"
        raise ModelRequestError(reason)

    async def _once(self, request: ChatRequest, shape: Shape[T], rung: Rung) -> ChatReply:
        form = Form(rung=rung, name=shape.name, schema=shape.schema)
        last = Message(role=Role.USER, text=_told(shape))
        messages = request.messages if rung is Rung.TOOL else (*request.messages, last)
        return await self._model.complete(replace(request, form=form, messages=messages), _unheard)


def _unheard(_chars: int) -> None:
    """Nobody cuts such a call short, so nobody counts what it has said."""


def _told(shape: Shape[T]) -> str:
    schema = json.dumps(dict(shape.schema), ensure_ascii=False)
    return f"Answer with one JSON object and nothing else. It fits this JSON schema: {schema}"


def _repairing(request: ChatRequest, bad: _Bad) -> ChatRequest:
    said = Message(role=Role.ASSISTANT, text=bad.said or "(nothing)")
    told = Message(role=Role.USER, text=f"That does not fit: {bad.problem}. Answer again.")
    return replace(request, messages=(*request.messages, said, told))


def _parsed(reply: ChatReply, shape: Shape[T]) -> T | _Bad:
    """Read what came: the arguments of a call of that name, or the text, fenced or bare."""
    said = _said(reply, shape.name)
    try:
        return shape.parse(json.loads(_bare(said)))
    except ValueError as error:
        return _Bad(said=said, problem=str(error)[:500])


def parsed_object(reply: ChatReply, name: str) -> Mapping[str, Any]:
    """Return the JSON object of an answer; an empty one when there is none."""
    try:
        found = json.loads(_bare(_said(reply, name)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _said(reply: ChatReply, name: str) -> str:
    called = next((call.arguments for call in reply.calls if call.name == name), "")
    return called or reply.text


def _bare(said: str) -> str:
    """Return the JSON of an answer that has words, or a fence, around it."""
    fenced = FENCED.search(said)
    text = fenced[1] if fenced else said
    begin, end = text.find("{"), text.rfind("}")
    return text[begin : end + 1] if 0 <= begin < end else text
