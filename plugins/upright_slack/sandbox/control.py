"""Control: how a demo or a test tells the sandbox what happens. Loopback only, no sign-in.

All bodies are JSON objects; an unknown key is refused.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, Final

from aiohttp import web

from upright.api import TriggerRejectedError
from upright.kit.payload import Json
from upright_slack.sandbox.api import Api
from upright_slack.sandbox.faults import CallFault, CallRule, EventFault, EventRule
from upright_slack.sandbox.world import NotThereError, Shape

PREFIX: Final = "/_sandbox"
_CHANNEL: Final = PREFIX + "/channels/{channel}"
_MESSAGE: Final = _CHANNEL + "/messages/{ts}"
_LOCAL: Final = frozenset({"127.0.0.1", "localhost"})
Handler = Callable[[web.Request, Json], Awaitable[object]]


class Control:
    """The control API over one sandbox."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._world = api.world
        self._courier = api.courier

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.get(PREFIX, self._with("", self._health)),
            web.post(f"{PREFIX}/channels", self._with("id name direct member", self._channel)),
            web.post(f"{_CHANNEL}/join", self._with("", self._join)),
            web.get(f"{_CHANNEL}/messages", self._with("", self._messages)),
            web.post(f"{_CHANNEL}/messages", self._with("user text thread_ts bot", self._post)),
            web.patch(_MESSAGE, self._with("text unfurl", self._edit)),
            web.delete(_MESSAGE, self._with("", self._delete)),
            web.post(f"{_MESSAGE}/reactions", self._with("user name remove", self._react)),
            web.get(f"{PREFIX}/events", self._with("", self._events)),
            web.post(f"{PREFIX}/events/{{id}}/again", self._with("", self._again)),
            web.post(f"{PREFIX}/sockets/refresh", self._with("", self._refresh)),
            web.post(f"{PREFIX}/sockets/cut", self._with("", self._cut)),
            web.post(f"{PREFIX}/hook", self._with("url", self._hook)),
            web.post(
                f"{PREFIX}/faults", self._with("on fault count type method done", self._fault)
            ),
            web.delete(f"{PREFIX}/faults", self._with("", self._no_faults)),
        ]

    def _with(
        self, keys: str, handler: Handler
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            if (request.host.partition(":")[0]) not in _LOCAL or "Origin" in request.headers:
                return web.json_response({"error": "Only from this machine"}, status=403)
            try:
                value: Any = json.loads(await request.read() or b"{}")
            except ValueError:
                value = None
            if not isinstance(value, dict):
                return web.json_response({"error": "The body is no JSON object"}, status=400)
            if unknown := sorted(value.keys() - set(keys.split())):
                said = f"Unknown keys: {', '.join(unknown)}; known: {keys}"
                return web.json_response({"error": said}, status=422)
            try:
                return web.json_response(await handler(request, Json(value)))
            except NotThereError as error:
                return web.json_response({"error": str(error)}, status=404)
            except (TriggerRejectedError, ValueError) as error:
                return web.json_response({"error": str(error)}, status=422)

        return answer

    async def _health(self, _request: web.Request, _given: Json) -> object:
        return {"sandbox": "slack", "api_url": f"{self._api.base}/api"}

    async def _channel(self, _request: web.Request, given: Json) -> object:
        channel, member = given.text("id"), given.value.get("member", True) is True
        name, direct = given.maybe_text("name") or channel, given.flag("direct")
        return self._world.add_channel(channel, name, direct=direct, member=member).shape()

    async def _join(self, request: web.Request, _given: Json) -> object:
        return self._told(self._world.join(_at(request, "channel")))

    async def _messages(self, request: web.Request, _given: Json) -> object:
        return list(self._world.channel(_at(request, "channel")).messages.values())

    async def _post(self, request: web.Request, given: Json) -> object:
        more = {"bot_id": given.text("bot")} if given.maybe_text("bot") else {}
        event = self._world.post(
            _at(request, "channel"),
            given.text("user"),
            given.text("text"),
            thread_ts=given.maybe_text("thread_ts"),
            **more,
        )
        return self._told(event)

    async def _edit(self, request: web.Request, given: Json) -> object:
        where = _at(request, "channel"), _at(request, "ts")
        return self._told(self._world.edit(*where, given.text("text"), unfurl=given.flag("unfurl")))

    async def _delete(self, request: web.Request, _given: Json) -> object:
        return self._told(self._world.delete(_at(request, "channel"), _at(request, "ts")))

    async def _react(self, request: web.Request, given: Json) -> object:
        where = _at(request, "channel"), _at(request, "ts")
        who, name = given.text("user"), given.text("name")
        return self._told(self._world.react(*where, who, name, remove=given.flag("remove")))

    def _told(self, event: Shape) -> object:
        return {"event": event, "event_id": self._courier.deliver(event).event_id}

    async def _events(self, _request: web.Request, _given: Json) -> object:
        return [asdict(one) for one in self._courier.deliveries]

    async def _again(self, request: web.Request, _given: Json) -> object:
        if not self._courier.again(_at(request, "id")):
            raise NotThereError("event_not_found")
        return {}

    async def _refresh(self, _request: web.Request, _given: Json) -> object:
        await self._courier.refresh("refresh_requested")
        return {}

    async def _cut(self, _request: web.Request, _given: Json) -> object:
        self._courier.cut()
        return {}

    async def _hook(self, _request: web.Request, given: Json) -> object:
        self._courier.hook_url = given.maybe_text("url")
        return {}

    async def _fault(self, _request: web.Request, given: Json) -> object:
        count, fault = given.maybe_number("count") or 1, given.text("fault")
        if given.text("on") == "call":
            rule = CallRule(
                fault=CallFault(fault),
                method=given.maybe_text("method"),
                count=count,
                done=given.flag("done"),
            )
            self._api.faults.calls.append(rule)
        else:
            kind = given.maybe_text("type")
            self._api.faults.events.append(
                EventRule(fault=EventFault(fault), type=kind, count=count)
            )
        return {}

    async def _no_faults(self, _request: web.Request, _given: Json) -> object:
        self._api.faults.clear()
        return {}


def _at(request: web.Request, name: str) -> str:
    return request.match_info[name]
