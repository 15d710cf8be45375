"""Chat: the model port over one OpenAI-compatible endpoint, with bounds, retries and cancelling."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from upright.engine.ports import (
    ChatReply,
    ChatRequest,
    Clock,
    ModelUnavailableError,
    Reckoned,
    Usage,
)
from upright.llm.assembly import Assembly
from upright.llm.endpoint import Bounds, ModelSettings
from upright.llm.mapping import to_chat, to_tools
from upright.llm.prices import cost_usd_micros
from upright.llm.quirks import Part

log: Final = logging.getLogger(__name__)

CHARS_A_TOKEN: Final = 4
"""A rule of thumb, for what was cut off before its usage came."""

Roll = Callable[[], float]
"""Returns a number in [0, 1): the source of jitter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request as it goes over the wire."""

    model: str
    session: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]


class Source(Protocol):
    """What streams: the openai client in ``wire``, or a test's own."""

    async def stream(self, call: Call, take: Callable[[Part], None]) -> None:
        """Send the call, hand over each part, return at the stream's end; ModelError otherwise."""
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

    def heard(self, part: Part) -> None:
        if self.first_byte_s is None:
            self.first_byte_s = self.clock.monotonic() - self.began
        called = sum(len(call.name) + len(call.arguments) for call in part.calls)
        self.on_part(len(part.text) + len(part.refusal) + called)

    def forget(self) -> None:
        """Start a new try: its first byte is the one that the reply reports."""
        self.first_byte_s = None


class OpenAIChat:
    """Implements ``engine.ports.ChatModel``. ``start`` loads the client ahead of the first call."""

    def __init__(
        self,
        settings: ModelSettings,
        clock: Clock,
        roll: Roll,
        connect: Connect = connect_openai,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._roll = roll
        self._connect = connect
        self._source: Source | None = None
        self._connecting = asyncio.Lock()

    async def start(self) -> None:
        """Load the client in a thread and keep it; without this, the first call does."""
        async with self._connecting:
            if self._source is None:
                self._source = await asyncio.to_thread(self._connect, self._settings, self._clock)

    async def stop(self) -> None:
        """Close every connection; a later call opens new ones."""
        source, self._source = self._source, None
        if source is not None:
            await source.close()

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        """Return the whole reply; see ``engine.ports.ChatModel``.

        ``first_byte_s`` and ``seconds`` run from the call, over the tries that failed.
        """
        call = Call(
            model=self._settings.model_for(request.role),
            session=request.session,
            messages=to_chat(request.messages),
            tools=to_tools(request.tools),
        )
        timing = _Timing(clock=self._clock, began=self._clock.monotonic(), on_part=on_part)
        said, attempts = await self._retried(call, timing)
        seconds, model = self._clock.monotonic() - timing.began, said.model or call.model
        return ChatReply(
            model=model,
            text=said.text(),
            calls=said.calls({made.id for message in request.messages for made in message.calls}),
            usage=said.usage,
            first_byte_s=seconds if timing.first_byte_s is None else timing.first_byte_s,
            seconds=seconds,
            cost_usd_micros=cost_usd_micros(model, said.usage),
            attempts=attempts,
        )

    def reckon(self, request: ChatRequest, said_chars: int) -> Reckoned:
        """See ``engine.ports.ChatModel``: four characters a token, and nothing from a cache."""
        sent = json.dumps(to_chat(request.messages), ensure_ascii=False)
        offered = json.dumps(to_tools(request.tools), ensure_ascii=False)
        usage = Usage(
            input=(len(sent) + len(offered)) // CHARS_A_TOKEN,
            output=-(-said_chars // CHARS_A_TOKEN),
        )
        model = self._settings.model_for(request.role)
        return Reckoned(model=model, usage=usage, cost_usd_micros=cost_usd_micros(model, usage))

    async def _retried(self, call: Call, timing: _Timing) -> tuple[Assembly, int]:
        """Try until one works, or the tries are used up; say how many it took."""
        attempt = 1
        while True:
            try:
                return await self._try(call, timing), attempt
            except ModelUnavailableError as error:
                await self._back_off(call, attempt, error)
            attempt += 1

    async def _try(self, call: Call, timing: _Timing) -> Assembly:
        if self._source is None:
            await self.start()
        said = Assembly()
        timing.forget()
        try:
            await self._stream(call, timing, said)
        except TimeoutError as error:
            raise ModelUnavailableError(_silence(timing, self._settings.bounds)) from error
        if not said.complete:
            raise ModelUnavailableError("the stream was cut before its end")
        if not said.chosen:
            raise ModelUnavailableError("the answer had no choices")
        return said

    async def _stream(self, call: Call, timing: _Timing, said: Assembly) -> None:
        """Stream one try into *said*; TimeoutError when a bound ends it."""
        bounds, loop = self._settings.bounds, asyncio.get_running_loop()
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
        bounds, asked_s = self._settings.bounds, error.retry_after_s
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


def _silence(timing: _Timing, bounds: Bounds) -> str:
    if timing.first_byte_s is None:
        return f"no first byte within {bounds.first_byte_s:g} s"
    return f"silent for {bounds.idle_s:g} s, or longer than {bounds.whole_s:g} s in all"
