"""Slack's connector passes the contract of all connectors, by Socket Mode and by HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from fixtures.eventually import eventually
from fixtures.slack import (
    ANN,
    APP_TOKEN,
    BOT_TOKEN,
    DEV,
    ME,
    QUICK,
    SECRET,
    SECRETS,
    WITHIN_S,
    request,
    settings,
    swept,
)
from upright.api import Connector, Destination, InboundRequest
from upright.testing.context import MemoryContext
from upright.testing.contract import ConnectorContract
from upright.testing.outside import Outside, Said
from upright_slack.connector import SlackConnector
from upright_slack.sandbox.courier import Delivery
from upright_slack.sandbox.faults import CallFault, CallRule
from upright_slack.sandbox.server import Options, Sandbox, running

Shape = dict[str, Any]


@dataclass
class SlackOutside(Outside):
    """A sandbox with one channel, and somebody in it."""

    at: Sandbox
    http: bool
    told: dict[str, Delivery] = field(default_factory=dict)

    def connector(self) -> SlackConnector:
        return SlackConnector("contract", settings(self.at.api_url, http=self.http, timeout_s=5))

    async def settled(self, connector: Connector, context: MemoryContext) -> None:
        await super().settled(connector, context)
        if not self.http:
            await eventually(lambda: swept(self.at), within_s=WITHIN_S)

    def _said(self, event: Shape, native: str) -> Said:
        if not self.http:
            self.told[native] = self.at.courier.deliver(event)
            return Said(native=native)
        body = json.dumps(self.at.courier.callback(event).payload).encode()
        return Said(native=native, requests=(request(self.at.courier.signed(body), body),))

    async def say(self, text: str) -> Said:
        event = self.at.world.post(DEV, ANN, text)
        return self._said(event, str(event["ts"]))

    async def edit(self, said: Said, text: str) -> Said:
        return self._said(self.at.world.edit(DEV, said.native, text), said.native)

    async def delete(self, said: Said) -> Said:
        return self._said(self.at.world.delete(DEV, said.native), said.native)

    async def say_as_us(self, text: str) -> Said:
        event = self.at.world.post(DEV, ME, text, bot_id=self.at.world.bot)
        return self._said(event, str(event["ts"]))

    async def tell_again(self, said: Said) -> Said:
        if not self.http:
            self.at.courier.again(self.told[said.native].event_id)
        return said

    def sign(self, body: bytes) -> InboundRequest:
        return request(self.at.courier.signed(body), body)

    def destination(self) -> Destination:
        return Destination(source="contract", kind="room", address=(("channel", DEV),))

    async def visible(self) -> Sequence[str]:
        messages = self.at.world.channel(DEV).messages.values()
        return [str(one["text"]) for one in messages if one["user"] == ME]

    async def limit(self) -> float:
        rule = CallRule(fault=CallFault.LIMITED, method="chat.postMessage")
        self.at.api.faults.calls.append(rule)
        return 2.0

    async def lose_answer(self) -> None:
        rule = CallRule(fault=CallFault.DROP, method="chat.postMessage", done=True)
        self.at.api.faults.calls.append(rule)

    async def hang(self) -> None:
        self.at.api.faults.calls.append(CallRule(fault=CallFault.HANG, count=1_000))


@asynccontextmanager
async def outside(context: MemoryContext, *, http: bool) -> AsyncIterator[Outside]:
    used = {"env:B", "env:S"} if http else {"env:B", "env:A"}
    context.secrets.update({name: SECRETS[name] for name in used})
    options = Options(bot_token=BOT_TOKEN, app_token=APP_TOKEN, secret=SECRET, timing=QUICK)
    async with running(options, now=context.now) as at:
        at.world.add_channel(DEV, "dev")
        yield SlackOutside(at, http)


@pytest.mark.feature("slack.contract")
class TestBySocket(ConnectorContract):
    """Socket Mode."""

    def outside(self, context: MemoryContext) -> AbstractAsyncContextManager[Outside]:
        return outside(context, http=False)


@pytest.mark.feature("slack.contract")
class TestByHttp(ConnectorContract):
    """Events by HTTP."""

    def outside(self, context: MemoryContext) -> AbstractAsyncContextManager[Outside]:
        return outside(context, http=True)
