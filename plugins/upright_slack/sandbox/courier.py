"""Courier: brings events to the app, by its socket or by signed HTTP, as Slack does.

An answer within three seconds, else up to three retries; what has no socket waits for one as long.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from aiohttp import web

from upright_slack.sandbox.faults import EventFault, Faults
from upright_slack.sandbox.world import APP, Shape, World

ANSWER_S: Final = 3.0
RETRIES_S: Final = (0.0, 60.0, 300.0)
REASON: Final = "timeout"


@dataclass(slots=True, kw_only=True)
class Delivery:
    """One event on its way. ``answers`` are HTTP statuses, or ``ack``, or what went wrong."""

    event_id: str
    payload: Shape
    answers: list[str] = field(default_factory=list)

    @property
    def taken(self) -> bool:
        """Tell whether the app has answered well."""
        return bool({"ack", *(f"2{n:02d}" for n in range(100))} & set(self.answers))


@dataclass(slots=True, kw_only=True)
class Timing:
    """How patient the sandbox is; tests scale it down."""

    answer_s: float = ANSWER_S
    retries_s: Sequence[float] = RETRIES_S


class Courier:
    """All deliveries of one sandbox."""

    def __init__(
        self, world: World, tasks: asyncio.TaskGroup, faults: Faults, *, secret: str, timing: Timing
    ) -> None:
        self._world = world
        self._tasks = tasks
        self._faults = faults
        self._secret = secret
        self._timing = timing
        self._numbers = 0
        self._acks: dict[str, asyncio.Event] = {}
        self._held: list[Delivery] = []
        self._running = set[asyncio.Task[None]]()
        self._connected = asyncio.Event()
        self._transports: dict[web.WebSocketResponse, asyncio.Transport | None] = {}
        self.hook_url = ""
        self.sockets: list[web.WebSocketResponse] = []
        self.deliveries: list[Delivery] = []

    # ---------------------------------------------------------------- making
    def callback(self, event: Shape) -> Delivery:
        """Wrap an event as Slack does, with an id of its own."""
        self._numbers += 1
        event_id = f"Ev{self._numbers:09d}"
        payload = {
            "token": "",
            "team_id": self._world.team,
            "api_app_id": APP,
            "event": event,
            "type": "event_callback",
            "event_id": event_id,
            "event_time": int(self._world.now().timestamp()),
            "authorizations": [
                {"team_id": self._world.team, "user_id": self._world.bot_user, "is_bot": True}
            ],
        }
        return Delivery(event_id=event_id, payload=payload)

    def deliver(self, event: Shape) -> Delivery:
        """Bring one event, with the faults that hold."""
        delivery = self.callback(event)
        self.deliveries.append(delivery)
        rule = self._faults.on_event(str(event.get("type")))
        fault = rule.fault if rule else None
        if fault is EventFault.HOLD:
            self._held.append(delivery)
            return delivery
        if fault is not EventFault.LOSE:
            self._start(delivery, skip=1 if fault is EventFault.DROP else 0)
        if fault is EventFault.DUPLICATE:
            self._start(delivery)
        while self._held:
            self._start(self._held.pop(0))
        return delivery

    def again(self, event_id: str) -> bool:
        """Bring an event once more."""
        found = [one for one in self.deliveries if one.event_id == event_id]
        for delivery in found:
            self._start(delivery)
        return bool(found)

    def _start(self, delivery: Delivery, *, skip: int = 0) -> None:
        task = self._tasks.create_task(self._bring(delivery, skip), name="slack:deliver")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _bring(self, delivery: Delivery, skip: int) -> None:
        for attempt, wait_s in enumerate((0.0, *self._timing.retries_s)):
            if attempt < skip:
                delivery.answers.append("lost")
                continue
            await asyncio.sleep(wait_s)
            said = await self._once(delivery, attempt)
            delivery.answers.append(said)
            if said == "ack" or said.startswith("2"):
                return

    async def _once(self, delivery: Delivery, attempt: int) -> str:
        try:
            async with asyncio.timeout(self._timing.answer_s):
                return await (
                    self._by_http(delivery, attempt)
                    if self.hook_url
                    else self._by_socket(delivery, attempt)
                )
        except TimeoutError:
            return "late"
        except (aiohttp.ClientError, ConnectionError) as error:
            return type(error).__name__

    def close(self) -> None:
        """Give up what is under way."""
        for task in self._running:
            task.cancel()

    # ---------------------------------------------------------------- by HTTP
    def signed(self, body: bytes, *, attempt: int = 0) -> dict[str, str]:
        """Return the headers of a request."""
        at = str(int(self._world.now().timestamp()))
        signed = f"v0:{at}:".encode() + body
        headers = {
            "Content-Type": "application/json",
            "X-Slack-Request-Timestamp": at,
            "X-Slack-Signature": "v0="
            + hmac.digest(self._secret.encode(), signed, hashlib.sha256).hex(),
        }
        if attempt:
            headers |= {"X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": "http_timeout"}
        return headers

    async def _by_http(self, delivery: Delivery, attempt: int) -> str:
        body = json.dumps(delivery.payload).encode()
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                self.hook_url, data=body, headers=self.signed(body, attempt=attempt)
            ) as answer,
        ):
            await answer.read()
            return str(answer.status)

    # ---------------------------------------------------------------- by socket
    async def serve(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        """Serve one socket until it is closed."""
        hello = {"type": "hello", "num_connections": len(self.sockets) + 1}
        await socket.send_json({**hello, "connection_info": {"app_id": APP}})
        self.sockets.append(socket)
        self._transports[socket] = request.transport
        self._connected.set()
        try:
            async for message in socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    self._acked(message.data)
        finally:
            self.sockets.remove(socket)
            del self._transports[socket]
            if not self.sockets:
                self._connected.clear()

    def _acked(self, data: str) -> None:
        try:
            value: Any = json.loads(data)
        except ValueError:
            return
        event = self._acks.get(str(value.get("envelope_id"))) if isinstance(value, dict) else None
        if event is not None:
            event.set()

    async def _by_socket(self, delivery: Delivery, attempt: int) -> str:
        await self._connected.wait()
        self._numbers += 1
        envelope, acked = f"envelope-{self._numbers}", asyncio.Event()
        self._acks[envelope] = acked
        frame = {
            "envelope_id": envelope,
            "type": "events_api",
            "accepts_response_payload": False,
            "retry_attempt": attempt,
            "retry_reason": REASON if attempt else "",
            "payload": delivery.payload,
        }
        try:
            await self.sockets[-1].send_json(frame)
            await acked.wait()
        finally:
            del self._acks[envelope]
        return "ack"

    async def refresh(self, reason: str) -> None:
        """Tell all sockets that they end, and end them."""
        for socket in tuple(self.sockets):
            with suppress(ConnectionError, aiohttp.ClientError):
                await socket.send_json({"type": "disconnect", "reason": reason})
                await socket.close()

    def cut(self) -> None:
        """Drop all sockets without a word."""
        for socket in tuple(self.sockets):
            if (transport := self._transports.get(socket)) is not None:
                transport.abort()
