"""Wire: one streamed chat completion through the openai client; loaded late, for its weight.

This is the only file that imports openai (about a second when cold); ``chat`` loads it in a
thread, so that no event loop waits for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import openai
import orjson

from upright.engine.ports import Clock, ModelUnavailableError
from upright.llm.chat import Call
from upright.llm.endpoint import ModelSettings
from upright.llm.failures import Refusal, refusal_error, retry_after_s
from upright.llm.quirks import Part, read_chunk, read_whole

PATH: Final = "/chat/completions"
NO_KEY: Final = "none"
SESSION_HEADER: Final = "x-session-id"
SEND_S: Final = 60.0


class OpenAISource:
    """The client, with its own retries and read timeouts off: those are the caller's."""

    def __init__(self, settings: ModelSettings, clock: Clock) -> None:
        self._clock = clock
        key = settings.api_key
        bound_s = settings.bounds.connect_s
        self._client = openai.AsyncOpenAI(
            api_key=key.reveal() if key else NO_KEY,
            base_url=settings.base_url,
            max_retries=0,
            timeout=openai.Timeout(None, connect=bound_s, pool=bound_s, write=SEND_S),
            http_client=(
                openai.DefaultAsyncHttpxClient(trust_env=False) if settings.is_loopback() else None
            ),
        )
        self._client.platform_headers()  # reads files, once

    async def stream(self, call: Call, take: Callable[[Part], None]) -> None:
        """Send the call and hand over each part, in order, until the stream ends.

        Leaving by any road, being cancelled too, closes the connection of an unfinished stream.

        Raises:
            ModelError: what the endpoint or the connection did, already told apart.
        """
        async with self._told_apart():
            # The typed method would look every message through for what it might have to rename:
            # half of what a step cost. What we send is the wire's form already.
            opened = await self._client.post(
                PATH,
                cast_to=object,
                content=_body(call, stream=True),
                options={"headers": _headers(call), "security": {"bearer_auth": True}},
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
            async with opened as chunks:
                async for chunk in chunks:
                    take(read_chunk(chunk))

    async def whole(self, call: Call) -> Part:
        """Send the call, and return the answer in one piece.

        Raises:
            ModelError: as ``stream`` does.
        """
        async with self._told_apart():
            body = await self._client.post(
                PATH,
                cast_to=object,
                content=_body(call, stream=False),
                options={"headers": _headers(call), "security": {"bearer_auth": True}},
            )
            return read_whole(body)

    @asynccontextmanager
    async def _told_apart(self) -> AsyncIterator[None]:
        """Make what the client raises one of our own errors."""
        try:
            yield
        except openai.APIConnectionError as error:
            raise ModelUnavailableError(_reason(error)) from error
        except openai.APIError as error:
            raise refusal_error(self._refusal(error)) from error
        except ValueError as error:  # neither JSON nor UTF-8
            reason = f"the answer can't be read: {error}"
            raise ModelUnavailableError(reason) from error

    async def close(self) -> None:
        """Close the pool."""
        await self._client.close()

    def _refusal(self, error: openai.APIError) -> Refusal:
        codes = frozenset(code for code in (error.code, error.type) if isinstance(code, str))
        if not isinstance(error, openai.APIStatusError):
            return Refusal(status=None, codes=codes, reason=error.message)
        return Refusal(
            status=error.status_code,
            codes=codes,
            reason=_said(error),
            retry_after_s=retry_after_s(error.response.headers, self._clock.now()),
        )


def _headers(call: Call) -> dict[str, str]:
    return {"Content-Type": "application/json", SESSION_HEADER: call.session}


def _body(call: Call, *, stream: bool) -> bytes:
    """Return the request; without tools none are named, since some refuse an empty list."""
    body: dict[str, Any] = {"messages": call.messages, "model": call.model, "stream": stream}
    if stream:
        body["stream_options"] = {"include_usage": True}
    if call.tools:
        body["tools"] = call.tools
    return orjson.dumps({**body, **call.extra})


def _said(error: openai.APIError) -> str:
    """Return the endpoint's own sentence; the client's has the whole body in it."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    return message if isinstance(message, str) else error.message


def _reason(error: openai.APIConnectionError) -> str:
    cause = error.__cause__
    return f"{error.message} ({type(cause).__name__}: {cause})" if cause else error.message
