"""Matrix's connector passes the contract of all connectors, against a real Synapse."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from fixtures.faulty import LIMIT_MS, Faulty, faulty
from fixtures.matrix import settings
from fixtures.synapse import Synapse, User
from upright.api import Destination
from upright.testing.context import MemoryContext
from upright.testing.contract import ConnectorContract
from upright.testing.outside import Outside, Said
from upright_matrix.connector import MatrixConnector


@dataclass
class MatrixOutside(Outside):
    """A room of two on a real server, and a way to it that can fail."""

    server: Synapse
    ann: User
    bot: User
    room: str
    way: Faulty

    def connector(self) -> MatrixConnector:
        plain = settings(self.server, self.bot.id, poll_s=5)
        return MatrixConnector("contract", replace(plain, homeserver=self.way.url))

    async def say(self, text: str) -> Said:
        return Said(native=await to_thread(self.server.say, self.ann, self.room, text))

    async def edit(self, said: Said, text: str) -> Said:
        return Said(
            native=await to_thread(self.server.edit, self.ann, self.room, said.native, text)
        )

    async def delete(self, said: Said) -> Said:
        return Said(native=await to_thread(self.server.redact, self.ann, self.room, said.native))

    async def say_as_us(self, text: str) -> Said:
        return Said(native=await to_thread(self.server.say, self.bot, self.room, text))

    def destination(self) -> Destination:
        return Destination(source="contract", kind="room", address=(("room", self.room),))

    async def visible(self) -> Sequence[str]:
        events = await to_thread(self.server.messages, self.ann, self.room)
        ours = [one["content"] for one in events if one["sender"] == self.bot.id]
        return [str(one["body"]) for one in ours if "body" in one]

    async def limit(self) -> float:
        self.way.limits = 1
        return LIMIT_MS / 1000

    async def lose_answer(self) -> None:
        self.way.losses = 1

    async def hang(self) -> None:
        self.way.hears.clear()


@pytest.fixture(scope="module")
def people(synapse_server: Synapse) -> tuple[User, User]:
    return synapse_server.user("ann"), synapse_server.user("helper")


@pytest.mark.feature("matrix.contract")
class TestMatrix(ConnectorContract):
    """A real Synapse."""

    patience_s: ClassVar[float] = 60.0
    huge_chars: ClassVar[int] = 30_000  # an event holds 64 KiB
    pytestmark: ClassVar = [pytest.mark.asyncio, pytest.mark.timeout(180)]

    @pytest.fixture(autouse=True)
    def given(self, synapse: Synapse, people: tuple[User, User]) -> None:
        self.server, (self.ann, self.bot) = synapse, people

    def outside(self, context: MemoryContext) -> AbstractAsyncContextManager[Outside]:
        return self.opened(context)

    @asynccontextmanager
    async def opened(self, context: MemoryContext) -> AsyncIterator[Outside]:
        context.secrets["env:T"] = self.bot.token
        room = await to_thread(self.server.room, self.ann, self.bot)
        async with faulty(self.server.url) as way:
            yield MatrixOutside(self.server, self.ann, self.bot, room, way)
