"""Chat: the model port over one OpenAI-compatible endpoint, with bounds, retries and cancelling."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from upright.engine.ports import (
    ChatReply,
    ChatRequest,
    Clock,
    ModelRequestError,
    ModelToolsError,
    ModelUnavailableError,
    Reckoned,
    Usage,
)
from upright.llm.abilities import STREAMING, TOOLS, Abilities, blames_streaming, blames_tools
from upright.llm.assembly import Assembly
from upright.llm.endpoint import Bounds, ModelSettings
from upright.llm.mapping import to_chat, to_form, to_tools
from upright.llm.quirks import Part

log: Final = logging.getLogger(__name__)

CHARS_A_TOKEN: Final = 4
"""A rule of thumb, for what was cut off before its usage came."""

Roll = Callable[[], float]
"""Returns a number in [0, 1): the source of jitter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request as it goes over the wire; ``extra`` are more of its keys."""

    model: str
    session: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    extra: Mapping[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """What answers: the openai client in ``wire``, or a test's own."""

    async def stream(self, call: Call, take: Callable[[Part], None]) -> None:
        """Send the call, hand over each part, return at the stream's end; ModelError otherwise."""
        ...

    async def whole(self, call: Call) -> Part:
        """Send the call, and return the answer in one piece; ModelError otherwise."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


Connect = Callable[[ModelSettings, Clock], Source]


def connect_openai(settings: ModelSettings, clock: Clock) -> Source:
    """Make the real source; blocks for about a second when openai is not loaded yet."""
    wire = importlib.import_module("upright.llm.wire")
    return cast("Source", wire.OpenAISource(settings, clock))


@dataclass(slots=True, kw_only=True)
class _Timing:
    """When the call began and when its first byte came; tells the caller of each part."""

    clock: Clock
    began: float
    on_part: Callable[[int], None]
    first_byte_s: float | None = None
    chars: int = 0

    def heard(self, part: Part) -> None:
        if self.first_byte_s is None:
            self.first_byte_s = self.clock.monotonic() - self.began
        called = sum(len(call.name) + len(call.arguments) for call in part.calls)
        said = len(part.text) + len(part.refusal) + called
        self.chars += said
        self.on_part(said)

    def forget(self) -> None:
        """Start a new try: its first byte is the one that the reply reports."""
        self.first_byte_s, self.chars = None, 0


class OpenAIChat:
    """Implements ``engine.ports.ChatModel``. ``start`` loads the client ahead of the first call.

    What the endpoint refuses it is not asked for again: see ``abilities``.
    """

    def __init__(
        self,
        settings: ModelSettings,
        clock: Clock,
        roll: Roll,
        connect: Connect = connect_openai,
    ) -> None:
        self.settings = settings
        self.abilities = Abilities()
        self._clock = clock
        self._roll = roll
        self._connect = connect
        self._source: Source | None = None
        self._connecting = asyncio.Lock()

    async def start(self) -> None:
        """Load the client in a thread and keep it; without this, the first call does."""
        async with self._connecting:
            if self._source is None:
                self._source = await asyncio.to_thread(self._connect, self.settings, self._clock)

    async def stop(self) -> None:
        """Close every connection; a later call opens new ones."""
        source, self._source = self._source, None
        if source is not None:
            await source.close()

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        """Return the whole reply; see ``engine.ports.ChatModel``.

        ``first_byte_s`` and ``seconds`` run from the call, over the tries that failed. An endpoint
        that counts no tokens has them reckoned.
        """
        extra, tools = to_form(request.form)
        call = Call(
            model=self.settings.model_for(request.role),
            session=request.session,
            messages=to_chat(request.messages),
            tools=[*to_tools(request.tools), *tools],
            extra=extra,
        )
        timing = _Timing(clock=self._clock, began=self._clock.monotonic(), on_part=on_part)
        said, attempts, wasted = await self._retried(call, timing)
        seconds, model = self._clock.monotonic() - timing.began, said.model or call.model
        self.abilities.reckons = said.usage is None
        usage = said.usage or _reckoned(call, timing.chars)
        return ChatReply(
            model=model,
            text=said.text(),
            calls=said.calls({made.id for message in request.messages for made in message.calls}),
            usage=usage,
            first_byte_s=seconds if timing.first_byte_s is None else timing.first_byte_s,
            seconds=seconds,
            cost_usd_micros=self.settings.prices.cost_usd_micros(model, usage),
            attempts=attempts,
            wasted=self._priced(model, wasted) if wasted != Usage() else None,
        )

    def reckon(self, request: ChatRequest, said_chars: int) -> Reckoned:
        """See ``engine.ports.ChatModel``: four characters a token, and nothing from a cache."""
        call = Call(
            model=self.settings.model_for(request.role),
            session=request.session,
            messages=to_chat(request.messages),
            tools=to_tools(request.tools),
        )
        return self._priced(call.model, _reckoned(call, said_chars))

    def _priced(self, model: str, usage: Usage) -> Reckoned:
        cost = self.settings.prices.cost_usd_micros(model, usage)
        return Reckoned(model=model, usage=usage, cost_usd_micros=cost)

    async def _retried(self, call: Call, timing: _Timing) -> tuple[Assembly, int, Usage]:
        """Try until one works, or the tries are used up; say how many it took, and what in vain."""
        attempt, wasted = 1, Usage()
        while True:
            try:
                return await self._try(call, timing), attempt, wasted
            except ModelUnavailableError as error:
                if timing.first_byte_s is not None:  # it was answering: that is on the bill
                    wasted = _sum(wasted, _reckoned(call, timing.chars))
                error.attempts = attempt
                error.wasted = self._priced(call.model, wasted)
                await self._back_off(call, attempt, error)
            attempt += 1

    async def _try(self, call: Call, timing: _Timing) -> Assembly:
        if self._source is None:
            await self.start()
        said = Assembly()
        timing.forget()
        try:
            await self._asked(call, timing, said)
        except TimeoutError as error:
            raise ModelUnavailableError(_silence(timing, self.settings.bounds)) from error
        except ModelRequestError as error:
            if call.tools and blames_tools(str(error)):
                self.abilities.learn(TOOLS, has=False)
                raise ModelToolsError(str(error)) from error
            raise
        if not said.complete:
            raise ModelUnavailableError("the stream was cut before its end")
        if not said.chosen:
            raise ModelUnavailableError("the answer had no choices")
        return said

    async def _asked(self, call: Call, timing: _Timing, said: Assembly) -> None:
        """Ask for a stream; of an endpoint that has none, for the whole answer."""
        if self.abilities.has(STREAMING) is not False:
            try:
                await self._stream(call, timing, said)
            except ModelRequestError as error:
                if not blames_streaming(str(error)):
                    raise
                self.abilities.learn(STREAMING, has=False)
                log.info("model.no_streaming", extra={"reason": str(error)})
            else:
                return
        async with asyncio.timeout(self.settings.bounds.whole_s):
            part = await self._opened().whole(call)
        timing.heard(part)
        said.add(part)

    async def _stream(self, call: Call, timing: _Timing, said: Assembly) -> None:
        """Stream one try into *said*; TimeoutError when a bound ends it."""
        bounds, loop = self.settings.bounds, asyncio.get_running_loop()
        async with asyncio.timeout(bounds.whole_s), asyncio.timeout(bounds.first_byte_s) as silence:

            def take(part: Part) -> None:
                timing.heard(part)
                said.add(part)
                if not silence.expired():
                    silence.reschedule(loop.time() + bounds.idle_s)

            await self._opened().stream(call, take)

    def _opened(self) -> Source:
        if self._source is None:
            raise ModelUnavailableError("the model client was stopped")
        return self._source

    async def _back_off(self, call: Call, attempt: int, error: ModelUnavailableError) -> None:
        """Sleep with full jitter, no shorter than asked; raise *error* when it's over."""
        bounds, asked_s = self.settings.bounds, error.retry_after_s
        if bounds.backoff.exhausted(attempt) or (asked_s or 0.0) > bounds.max_retry_after_s:
            raise error
        delay_s = bounds.backoff.delay_s(attempt, roll=self._roll(), at_least_s=asked_s)
        log.warning(
            "model.retried",
            extra={
                "session": call.session,
                "model": call.model,
                "attempt": attempt,
                "delay_s": delay_s,
                "reason": error.reason,
            },
        )
        await self._clock.sleep(delay_s)


def _reckoned(call: Call, said_chars: int) -> Usage:
    """Reckon what a call used: four characters a token."""
    sent = json.dumps(call.messages, ensure_ascii=False)
    offered = json.dumps(call.tools, ensure_ascii=False)
    tokens = (len(sent) + len(offered)) // CHARS_A_TOKEN
    return Usage(input=tokens, output=-(-said_chars // CHARS_A_TOKEN))


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(input=one.input + other.input, output=one.output + other.output)


def _silence(timing: _Timing, bounds: Bounds) -> str:
    if timing.first_byte_s is None:
        return f"no first byte within {bounds.first_byte_s:g} s"
    return f"silent for {bounds.idle_s:g} s, or longer than {bounds.whole_s:g} s in all"
