"""Web API: the methods that the connector calls, as strict as Slack's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from aiohttp import web

from upright_slack.sandbox.courier import Courier
from upright_slack.sandbox.faults import CallFault, CallRule, Faults
from upright_slack.sandbox.world import NotThereError, Shape, World

MAX_TEXT: Final = 40_000
RETRY_AFTER_S: Final = 2
EACH_S: Final = 0.9  # one message a second and channel; clocks are not that exact
Handler = Callable[[Mapping[str, Any]], Awaitable[Shape]]


class RefusedError(Exception):
    """A call is refused; the message is Slack's word for it."""


@dataclass(slots=True, kw_only=True)
class Tokens:
    """What the API accepts: ``bot`` for all, ``app`` for opening sockets alone."""

    bot: str
    app: str


@dataclass(slots=True, kw_only=True)
class Api:
    """The methods over one world. ``calls`` are the names of those that were called."""

    world: World
    courier: Courier
    faults: Faults
    tokens: Tokens
    base: str
    closing: asyncio.Event
    calls: list[str] = field(default_factory=list)
    _tickets: set[str] = field(default_factory=set)
    _posted: dict[str, datetime] = field(default_factory=dict)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        methods: dict[str, Handler] = {
            "auth.test": self._auth,
            "apps.connections.open": self._open,
            "users.conversations": self._conversations,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "chat.postMessage": self._post,
        }
        served = [
            web.route("*", f"/api/{name}", self._method(name, handler))
            for name, handler in methods.items()
        ]
        return [*served, web.get("/link", self._link)]

    # ---------------------------------------------------------------- the frame
    def _method(
        self, name: str, handler: Handler
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            self.calls.append(name)
            rule = self.faults.on_call(name)
            if rule is not None and not rule.done:
                return await self._fault(request, rule)
            given = await _arguments(request)
            try:
                self._sign_in(request, name)
                value = {"ok": True, **await handler(given)}
            except _LimitedError:
                return _limited()
            except (RefusedError, NotThereError) as error:
                value = {"ok": False, "error": str(error)}
            return web.json_response(value) if rule is None else await self._fault(request, rule)

        return answer

    def _sign_in(self, request: web.Request, name: str) -> None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        wanted = self.tokens.app if name == "apps.connections.open" else self.tokens.bot
        if token != wanted:
            known = token in {self.tokens.app, self.tokens.bot}
            raise RefusedError("not_allowed_token_type" if known else "invalid_auth")

    async def _fault(self, request: web.Request, rule: CallRule) -> web.StreamResponse:
        match rule.fault:
            case CallFault.LIMITED:
                return _limited()
            case CallFault.ERROR_500 | CallFault.ERROR_503:
                return web.Response(status=int(rule.fault.value))
            case CallFault.INTERNAL | CallFault.REVOKED:
                return web.json_response({"ok": False, "error": rule.fault.value})
            case CallFault.GARBLED:
                return web.Response(text="<html>")
            case CallFault.HANG:
                await self.closing.wait()
            case CallFault.DROP:
                if request.transport is not None:
                    request.transport.abort()
        return web.Response(status=503)

    async def _link(self, request: web.Request) -> web.StreamResponse:
        """Serve a socket; its ticket is good once."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=403)
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse(heartbeat=None)
        await socket.prepare(request)
        await self.courier.serve(socket, request)
        return socket

    # ---------------------------------------------------------------- methods
    async def _auth(self, _given: Mapping[str, Any]) -> Shape:
        world = self.world
        who = {"team_id": world.team, "user_id": world.bot_user, "bot_id": world.bot}
        return {"url": f"{self.base}/", "team": "sandbox", "user": "helper", **who}

    async def _open(self, _given: Mapping[str, Any]) -> Shape:
        ticket = f"ticket-{len(self.calls)}"
        self._tickets.add(ticket)
        return {"url": f"{self.base.replace('http://', 'ws://')}/link?ticket={ticket}"}

    async def _conversations(self, given: Mapping[str, Any]) -> Shape:
        mine = [
            one.shape()
            for one in self.world.channels.values()
            if self.world.bot_user in one.members
        ]
        return _page(mine, given, "channels")

    async def _history(self, given: Mapping[str, Any]) -> Shape:
        self._member(given)
        found = _within(self.world.history(str(given["channel"])), given)
        return _page(_shown(found, given), given, "messages")

    async def _replies(self, given: Mapping[str, Any]) -> Shape:
        self._member(given)
        root = str(given.get("ts") or "")
        thread = self.world.replies(str(given["channel"]), root)
        found = [one for one in thread if one["ts"] == root or one in _within(thread, given)]
        return _page(_shown(found, given), given, "messages")

    async def _post(self, given: Mapping[str, Any]) -> Shape:
        channel, text = self._member(given), given.get("text")
        if not isinstance(text, str) or not text.strip():
            raise RefusedError("no_text")
        if len(text) > MAX_TEXT:
            raise RefusedError("msg_too_long")
        _metadata(given.get("metadata"))
        thread = str(given.get("thread_ts") or "")
        now, last = self.world.now(), self._posted.get(channel)
        if last is not None and abs((now - last).total_seconds()) < EACH_S:
            raise _LimitedError
        self._posted[channel] = now
        more = {"bot_id": self.world.bot, "metadata": given.get("metadata")}
        who = self.world.bot_user
        event = self.world.post(channel, who, text, thread_ts=thread, **more)
        self.courier.deliver({key: event[key] for key in event if key != "metadata"})
        return {"channel": channel, "ts": event["ts"], "message": event}

    def _member(self, given: Mapping[str, Any]) -> str:
        channel = self.world.channel(str(given.get("channel") or ""))
        if self.world.bot_user not in channel.members:
            raise RefusedError("not_in_channel")
        if channel.archived:
            raise RefusedError("is_archived")
        return channel.id


class _LimitedError(Exception):
    """One message a second and channel."""


def _limited() -> web.Response:
    value = {"ok": False, "error": "ratelimited"}
    return web.json_response(value, status=429, headers={"Retry-After": str(RETRY_AFTER_S)})


async def _arguments(request: web.Request) -> Mapping[str, Any]:
    if request.method == "GET":
        return request.query
    try:
        value: Any = json.loads(await request.read() or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _metadata(value: object) -> None:
    if value is None:
        return
    kind = value.get("event_type") if isinstance(value, dict) else None
    payload = value.get("event_payload") if isinstance(value, dict) else None
    if not isinstance(kind, str) or not isinstance(payload, dict):
        raise RefusedError("invalid_metadata_format")


def _within(messages: list[Shape], given: Mapping[str, Any]) -> list[Shape]:
    oldest, latest = str(given.get("oldest") or ""), str(given.get("latest") or "9")
    return [one for one in messages if oldest < str(one["ts"]) < latest]


def _shown(messages: list[Shape], given: Mapping[str, Any]) -> list[Shape]:
    if str(given.get("include_all_metadata", "")).lower() == "true":
        return messages
    return [{key: one[key] for key in one if key != "metadata"} for one in messages]


def _page(found: list[Shape], given: Mapping[str, Any], key: str) -> Shape:
    limit, begin = int(given.get("limit") or 100), int(given.get("cursor") or 0)
    end = begin + min(limit, 1_000)
    cursor = str(end) if end < len(found) else ""
    return {
        key: found[begin:end],
        "has_more": bool(cursor),
        "response_metadata": {"next_cursor": cursor},
    }
