"""Probe: what an endpoint can do, found by asking it a few short questions (A7).

It costs about eight small calls. Nothing of it is guessed from a name: each answer is looked at.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from upright.core.transcript import Message, Role, ToolSpec
from upright.engine.ports import (
    ChatReply,
    ChatRequest,
    Form,
    ModelRequestError,
    Rung,
    Usage,
)
from upright.llm.abilities import (
    ABILITIES,
    CACHED,
    FORCED,
    JSON,
    PARALLEL,
    SCHEMA,
    STREAMING,
    TOOLS,
    USAGE,
    Abilities,
    degraded,
)
from upright.llm.roles import Endpoint
from upright.llm.structured import parsed_object

SESSION: Final = "probe"
ADD: Final = ToolSpec(
    name="add",
    description="Add two whole numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)
WORD: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
HELLO: Final = "Answer with the one word: hello."
ADD_TWICE: Final = "Use the tool add twice, in one answer: for 1 and 2, and for 3 and 4."
IN_JSON: Final = 'Answer with this JSON object and nothing else: {"word": "hello"}'
LONG: Final = "This sentence is here to be cached. " * 300  # providers cache from 1024 tokens on


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a probe found. ``can`` has every ability; ``lacks`` says what degrades, a sentence each.

    ``replies`` are to be charged. ``model`` is what the endpoint calls it.
    """

    base_url: str
    model: str
    can: dict[str, bool]
    lacks: tuple[str, ...]
    replies: tuple[ChatReply, ...]


class _Probing:
    """Asks one endpoint, and keeps what it said."""

    def __init__(self, endpoint: Endpoint, role: str) -> None:
        self._endpoint = endpoint
        self._request = ChatRequest(role=role, session=SESSION, messages=())
        self.replies: list[ChatReply] = []

    async def ask(
        self, text: str, *, tools: tuple[ToolSpec, ...] = (), form: Form | None = None
    ) -> ChatReply:
        message = Message(role=Role.USER, text=text)
        request = replace(self._request, messages=(message,), tools=tools, form=form)
        reply = await self._endpoint.complete(request, _unheard)
        self.replies.append(reply)
        return reply

    async def in_shape(self, rung: Rung) -> bool:
        form = Form(rung=rung, name="answer", schema=WORD)
        reply = await self.ask(IN_JSON, form=form)
        called = rung is not Rung.TOOL or any(call.name == "answer" for call in reply.calls)
        return called and "word" in parsed_object(reply, "answer")


async def probe(endpoint: Endpoint, role: str) -> Found:
    """Find out what the endpoint of a role can do.

    Raises:
        ModelError: it gives no answer at all: it is away, or refuses the key or the model.
    """
    asking, known = _Probing(endpoint, role), Abilities()
    endpoint.abilities.know({})  # what was known is looked at anew
    first = await asking.ask(HELLO)
    streams = endpoint.abilities.has(STREAMING) is not False
    known.learn(STREAMING, has=streams)
    known.learn(USAGE, has=not endpoint.abilities.reckons)

    async def adds() -> bool:
        reply = await asking.ask(ADD_TWICE, tools=(ADD,))
        known.learn(PARALLEL, has=len(reply.calls) > 1)
        return bool(reply.calls) and all(call.name == ADD.name for call in reply.calls)

    async def caches() -> bool:
        texts = (f"{LONG}{HELLO}", f"{LONG}{HELLO}")
        said = [await asking.ask(text) for text in texts]
        return said[-1].usage.cached > 0

    questions: tuple[tuple[str, Callable[[], Awaitable[bool]]], ...] = (
        (TOOLS, adds),
        (SCHEMA, lambda: asking.in_shape(Rung.SCHEMA)),
        (JSON, lambda: asking.in_shape(Rung.JSON)),
        (FORCED, lambda: asking.in_shape(Rung.TOOL)),
        (CACHED, caches),
    )
    for name, question in questions:
        known.learn(name, has=await _yes(question))
    can = {name: bool(known.has(name)) for name in ABILITIES}
    endpoint.abilities.know(can)
    return Found(
        base_url=endpoint.settings.base_url,
        model=first.model,
        can=can,
        lacks=tuple(degraded(can)),
        replies=tuple(asking.replies),
    )


async def _yes(question: Callable[[], Awaitable[bool]]) -> bool:
    """Ask; what the endpoint refuses, or can't answer, it can't do."""
    try:
        return await question()
    except ModelRequestError:
        return False


def used(found: Found) -> Usage:
    """Add up what a probe cost, in tokens."""
    return Usage(
        input=sum(reply.usage.input for reply in found.replies),
        cached=sum(reply.usage.cached for reply in found.replies),
        output=sum(reply.usage.output for reply in found.replies),
    )


def _unheard(_chars: int) -> None:
    """Nobody cuts a probe short."""
