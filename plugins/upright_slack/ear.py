"""Ear: Socket Mode. Connect, read by the history what was missed, then take what comes.

An envelope is acknowledged after the commit of its trigger; Slack sends it again otherwise. The
socket is given up when nothing, not even a ping, came for a minute: client libraries are known to
wait for ever there.

Source: docs.slack.dev, "Using Socket Mode".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorContext,
    ConnectorNotReadyError,
    Trigger,
    TriggerRejectedError,
)
from upright.kit.calls import JsonCalls, LostError, NotSentError
from upright.kit.groups import first
from upright.kit.late import late
from upright.kit.payload import Json
from upright_slack.client import SIGNED_OUT, error_of, pause_s
from upright_slack.sweep import Sweep
from upright_slack.translate import Translator

BATCH: Final = 100
BACKLOG: Final = 1_000
MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
CLOSE_S: Final = 2.0
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_GONE: Final = frozenset(
    {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING}
)


@dataclass(frozen=True, slots=True)
class Place:
    """Up to which ``ts`` each channel is told; ``at`` holds for channels that we came to later."""

    at: str
    channels: Mapping[str, str]

    @classmethod
    def read(cls, cursor: str) -> Place | None:
        """Read a stored cursor; None when it is none of ours."""
        try:
            value: Any = json.loads(cursor)
            channels = {str(key): str(ts) for key, ts in value["channels"].items()}
            return cls(str(value["at"]), channels)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def __str__(self) -> str:
        return json.dumps({"at": self.at, "channels": self.channels}, separators=(",", ":"))

    def since(self, channel: str) -> str:
        """Return up to where a channel is told."""
        return self.channels.get(channel, self.at)

    def moved(self, channel: str, ts: str) -> Place:
        """Return the place after one more event; it never moves back."""
        known = max(ts, self.since(channel))
        return Place(max(self.at, ts), {**self.channels, channel: known})


@dataclass(slots=True, kw_only=True)
class Ear:
    """Listens for one source. ``heard_at`` and ``gap`` are its health."""

    opener: JsonCalls  # with the app's token: it can open sockets, and nothing else
    context: ConnectorContext
    translator: Translator
    sweep: Sweep
    silence_s: float
    heard_at: datetime | None = None
    gap: str = ""
    _place: Place = field(default_factory=lambda: Place("", {}))
    _history: Place | None = None  # what was said up to there, before our very first start

    async def listen(self) -> None:
        """Listen until cancelled; a new socket at once whenever Slack says that the old one ends.

        Raises:
            ConnectorAuthFailedError: a token is refused.
            ConnectorNotReadyError: Slack can't be reached, or the socket is dead.
        """
        cursor = await self.context.cursor()
        stored = Place.read(cursor) if cursor is not None else None
        if cursor is not None and stored is None:
            self.gap = "The place up to which all was read is lost: what came before is not read"
            self.context.log.warning("source.cursor_lost", extra={"source": self.context.source})
        self._place = stored or await self._begin()
        while True:
            await self._connection()

    async def _begin(self) -> Place:
        """Begin now: what was said before is history."""
        channels = {one: await self.sweep.newest(one) for one in await self.sweep.channels()}
        place = Place(max(channels.values(), default=""), channels)
        place = place if place.at else Place(f"{int(self.context.now().timestamp())}.000000", {})
        await self.context.emit((), cursor=str(place))
        self._history = place
        return place

    # ---------------------------------------------------------------- one socket
    async def _connection(self) -> None:
        """Serve one socket to its end."""
        url = await self._open()
        try:
            socket = await self.opener.session.ws_connect(
                url, autoping=False, max_msg_size=MAX_FRAME_BYTES, timeout=_TIMEOUT
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = f"The socket can't be opened: {type(error).__name__}"
            raise ConnectorNotReadyError(reason) from error
        try:
            await self._serve(socket)
        finally:
            with suppress(aiohttp.ClientError, TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await socket.close()

    async def _serve(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Read what was missed once Slack says hello, then what comes."""
        backlog: asyncio.Queue[Json | None] = asyncio.Queue(BACKLOG)
        await self._hello(socket)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(socket, backlog), name="slack:read")
                await self._catch_up()
                await self._work(socket, backlog)
        except ExceptionGroup as errors:
            raise first(errors) from errors

    async def _open(self) -> str:
        """Ask for the address of a socket; it is good once."""
        try:
            answer = await self.opener.call("POST", "/apps.connections.open")
        except (NotSentError, LostError) as lost:
            raise ConnectorNotReadyError(str(lost)) from lost
        error, wait_s = error_of(answer), pause_s(answer)
        if error in SIGNED_OUT:
            said = f"apps.connections.open: {error}"
            raise ConnectorAuthFailedError(said)
        address = urlsplit(url := answer.text("url"))
        safe = address.scheme == "wss" or address.hostname in _LOOPBACK
        if error or not safe:
            reason = f"apps.connections.open: {error or 'no safe address'}"
            raise ConnectorNotReadyError(reason, retry_after_s=wait_s)
        return url

    async def _hello(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while (frame := await self._frame(socket)) is not None:
            if frame.maybe_text("type") == "hello":
                return
        raise ConnectorNotReadyError("The socket was closed before its hello")

    async def _frame(self, socket: aiohttp.ClientWebSocketResponse) -> Json | None:
        """Return the next message; None when the socket is closed."""
        while True:
            try:
                message = await socket.receive(timeout=self.silence_s)
            except TimeoutError as error:
                reason = f"The socket was silent for {self.silence_s:g} s"
                raise ConnectorNotReadyError(reason) from error
            self.heard_at = self.context.now()
            if message.type in _GONE or message.type is aiohttp.WSMsgType.ERROR:
                return None
            if message.type is aiohttp.WSMsgType.PING:
                await _tell(socket.pong(message.data))
            elif message.type is aiohttp.WSMsgType.TEXT and (frame := _json(message.data)):
                return frame

    async def _read(
        self, socket: aiohttp.ClientWebSocketResponse, backlog: asyncio.Queue[Json | None]
    ) -> None:
        """Put what comes into the backlog; None at its end."""
        while (frame := await self._frame(socket)) is not None:
            if frame.maybe_text("type") == "disconnect":
                if frame.maybe_text("reason") == "link_disabled":
                    raise ConnectorNotReadyError("Socket Mode is switched off for the app")
                break
            await backlog.put(frame)
        await backlog.put(None)

    async def _work(
        self, socket: aiohttp.ClientWebSocketResponse, backlog: asyncio.Queue[Json | None]
    ) -> None:
        while (frame := await backlog.get()) is not None:
            if not (envelope := frame.maybe_text("envelope_id")):
                continue
            if frame.maybe_text("type") == "events_api":
                await self._take(frame)
            await _tell(socket.send_str(json.dumps({"envelope_id": envelope})))

    # ---------------------------------------------------------------- what comes
    async def _take(self, frame: Json) -> None:
        """Store what one envelope tells; what can't be read is said in the log."""
        try:
            payload = frame.part("payload")
            inner = payload.part("event")
            raw = json.dumps(dict(payload.value)).encode()
            event_id = payload.maybe_text("event_id")
            made = await self.translator.trigger(inner, event_id=event_id, raw=raw)
        except TriggerRejectedError as error:
            extra = {"source": self.context.source, "why": error.reason}
            self.context.log.warning("slack.not_read", extra=extra)
            return
        if made is None:
            return
        channel = dict(made.context.facts).get("channel", "")
        at = inner.maybe_text("event_ts") or inner.maybe_text("ts")
        if self._history is not None and at <= self._history.since(channel):
            return  # Slack tries for minutes to tell what was said before anybody listened
        self._place = self._place.moved(channel, at)
        await self.context.emit((made,), cursor=str(self._place))

    async def _catch_up(self) -> None:
        """Store what was missed, oldest first, marked late; the cursor with the last of it."""
        batch, place = list[Trigger](), self._place
        async for ts, made in self.sweep.missed(self._place.since):
            place = place.moved(dict(made.context.facts).get("channel", ""), ts)
            batch.append(late(made))
            if len(batch) == BATCH:
                await self.context.emit(batch)
                batch = []
        if batch or place != self._place:
            self._place = place
            await self.context.emit(batch, cursor=str(place))


_TIMEOUT: Final = aiohttp.ClientWSTimeout(ws_close=CLOSE_S)


async def _tell(sending: Awaitable[None]) -> None:
    """Send on a socket; that it is closed meanwhile, its reader finds out."""
    with suppress(aiohttp.ClientError, ConnectionError):
        await sending


def _json(data: str) -> Json | None:
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return Json(value) if isinstance(value, dict) else None
