"""Meter: the scripted model behind the hub's port, with its prompt cache and its pace.

Tokens are counted as the scripted server counts them: what a prompt shares with earlier ones of
its conversation comes from the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from upright.cli.bench.ablation.books import MODELS, Books
from upright.cli.bench.ablation.mind import decide
from upright.core.transcript import Message, ToolCall
from upright.engine.ports import ChatReply, ChatRequest, Clock, Reckoned, Usage
from upright.llm.mapping import to_chat, to_tools
from upright.llm.scripted.cache import Hit, Prompt, PromptCache, prompt_of
from upright.llm.scripted.decide import Answer
from upright.llm.scripted.frames import Completion

BEGINS_S: Final = 0.8
OUTPUT_S: Final = 0.015  # a token
FRESH_S: Final = 0.0001  # a token of the prompt that was not in the cache


@dataclass(slots=True, kw_only=True)
class Meter:
    """Implements ``engine.ports.ChatModel``."""

    clock: Clock
    books: Books
    _cache: PromptCache = field(default_factory=PromptCache)

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        """Answer, after the time that the answer takes."""
        tools = to_tools(request.tools)
        answer = decide({"messages": [_chat(one) for one in request.messages], "tools": tools})
        hit = self._cache.look_up(request.session, prompt_for(request, tools))
        usage = usage_of(answer, hit)
        self.books.busts += hit.bust
        self.books.under_way += 1
        try:
            await self.clock.sleep(pace_s(usage))
        finally:
            self.books.under_way -= 1
        on_part(len(answer.text))
        calls = [
            ToolCall(id=one.id, name=one.name, arguments=one.arguments) for one in answer.calls
        ]
        reply = ChatReply(
            model=MODELS[request.role],
            text=answer.text,
            calls=tuple(calls),
            usage=usage,
            first_byte_s=BEGINS_S,
            seconds=pace_s(usage),
        )
        self.books.note(request, reply, self.clock.monotonic())
        return reply

    def reckon(self, request: ChatRequest, said_chars: int) -> Reckoned:
        """See ``engine.ports.ChatModel``; nothing is cut short here."""
        return Reckoned(model=MODELS[request.role], usage=Usage(output=said_chars))


def usage_of(answer: Answer, hit: Hit) -> Usage:
    """Count an answer as the scripted server does."""
    counted = Completion(id="", model="", answer=answer, hit=hit).usage()
    output = int(counted["completion_tokens"])
    return Usage(input=hit.prompt_tokens, cached=hit.cached_tokens, output=output)


def pace_s(usage: Usage) -> float:
    """Return how long a call takes."""
    return BEGINS_S + OUTPUT_S * usage.output + FRESH_S * (usage.input - usage.cached)


def prompt_for(request: ChatRequest, tools: list[dict[str, Any]]) -> Prompt:
    """Write the prompt as the scripted server does, each message once."""
    (head,) = prompt_of({"tools": tools}).pieces
    return Prompt(pieces=(head, *(_written(one) for one in request.messages)))


@lru_cache(maxsize=4096)
def _chat(message: Message) -> Mapping[str, Any]:
    (one,) = to_chat([message])
    return one


@lru_cache(maxsize=4096)
def _written(message: Message) -> bytes:
    return prompt_of({"messages": [_chat(message)]}).pieces[1]
