"""Mind: the model of the replayed day: it deals with its last message, in as few words as it can.

It looks at what came last alone, so that a new generation of its transcript changes nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from upright.agent.prompts.notices import SUMMARISE
from upright.cli.bench.ablation.meter import pace_s, prompt_for
from upright.core.transcript import Message, Role, ToolCall
from upright.engine.ports import ChatReply, ChatRequest, Clock, Reckoned, Usage
from upright.llm.mapping import to_tools
from upright.llm.prices import PRICE_LIST
from upright.llm.scripted.cache import BYTES_A_TOKEN, Prompt, PromptCache

MODELS: Final[Mapping[str, str]] = {"router": "gpt-5-mini", "worker": "gpt-5"}
SUMMARY: Final = "Each trigger has its worker; nothing is open that has none. " * 6
_HEADER: Final = re.compile(r"^\[\d+ of \d+\] trigger (tr_\w+) kind=(\S+)", re.MULTILINE)
OUTPUT_TOKENS: Final = 60


@dataclass(slots=True)
class Bill:
    """What one role used: bytes of prompts, and how many of them were sent before."""

    calls: int = 0
    prompt: int = 0
    reusable: int = 0  # bytes of the prompt before it, of the same generation
    reused: int = 0
    cached: int = 0  # bytes that any earlier prompt of the session shares
    output: int = 0
    usd_micros: int = 0


@dataclass(slots=True, kw_only=True)
class Mind:
    """Implements ``engine.ports.ChatModel``; remembers each conversation's last prompt."""

    clock: Clock
    bills: dict[str, Bill] = field(
        default_factory=lambda: {role: Bill() for role in (*MODELS, "compaction")}
    )
    conversations: Counter[str] = field(default_factory=Counter)
    busts: int = 0
    under_way: int = 0
    _last: dict[str, bytes] = field(default_factory=dict)
    _cache: PromptCache = field(default_factory=PromptCache)

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        """Answer, after the time that it takes."""
        prompt = prompt_for(request, to_tools(request.tools))
        usage = self._note(request, prompt)
        self.under_way += 1
        try:
            await self.clock.sleep(pace_s(usage))
        finally:
            self.under_way -= 1
        text, calls = decide(request)
        on_part(len(text))
        model = MODELS[request.role]
        return ChatReply(
            model=model,
            text=text,
            calls=calls,
            usage=usage,
            first_byte_s=0.5,
            seconds=pace_s(usage),
            cost_usd_micros=PRICE_LIST.cost_usd_micros(model, usage),
        )

    def reckon(self, request: ChatRequest, said_chars: int) -> Reckoned:
        """See ``engine.ports.ChatModel``."""
        return Reckoned(model=MODELS[request.role], usage=Usage(output=said_chars))

    def _note(self, request: ChatRequest, prompt: Prompt) -> Usage:
        """Compare a prompt with the one before it in its conversation; count both."""
        whole = prompt.whole()
        before = self._last.get(request.session, b"")
        common = len(before) if whole.startswith(before) else 0
        session = request.session.partition(".")[0]
        hit = self._cache.look_up(session, prompt)
        sums_up = request.messages[-1].text == SUMMARISE
        bill = self.bills["compaction" if sums_up else request.role]
        bill.calls += 1
        bill.prompt += len(whole)
        bill.reusable += len(before)
        bill.reused += common
        bill.cached += hit.cached_bytes
        bill.output += OUTPUT_TOKENS
        self.busts += common < len(before)
        if not sums_up:  # it closes its generation: nothing follows it
            self._last[request.session] = whole
            self.conversations[request.session] += 1
        usage = Usage(
            input=hit.prompt_tokens,
            cached=hit.cached_bytes // BYTES_A_TOKEN,
            output=OUTPUT_TOKENS,
        )
        bill.usd_micros += PRICE_LIST.cost_usd_micros(MODELS[request.role], usage) or 0
        return usage


def decide(request: ChatRequest) -> tuple[str, tuple[ToolCall, ...]]:
    """Return what is said, and the calls."""
    last, number = request.messages[-1], sum(len(m.calls) for m in request.messages)
    if last.text == SUMMARISE:
        return SUMMARY, ()
    wanted = _route(last) if request.role == "router" else _work(request.messages, last)
    made = tuple(
        ToolCall(id=f"call_{n}", name=tool, arguments=json.dumps(given))
        for n, (tool, given) in enumerate(wanted, start=number + 1)
    )
    return ("" if made else "Dealt with."), made


def _route(last: Message) -> list[tuple[str, Mapping[str, Any]]]:
    if last.role is not Role.USER:
        return []
    goal = {"goal": "Mend what it reports, and answer.", "criteria": ["it is answered"]}
    return [("spawn", {"trigger": one, **goal}) for one, _kind in _HEADER.findall(last.text)]


def _work(messages: tuple[Message, ...], last: Message) -> list[tuple[str, Mapping[str, Any]]]:
    if last.role is Role.USER:
        steps = [{"text": f"look at {one}", "done": True} for one, _ in _HEADER.findall(last.text)]
        return [("plan", {"steps": steps})]
    called = next(m for m in reversed(messages) if m.calls).calls
    if called[0].name == "plan":
        return [("wait", {"for": "thread", "why": "what they say", "look_first": "the newest"})]
    return []
