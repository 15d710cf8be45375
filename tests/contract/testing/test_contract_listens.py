"""The contract itself: an honest connector that listens passes it, and a faulty one does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest

from upright.api import (
    Actor,
    ActorKind,
    Capabilities,
    Channel,
    Connector,
    ConnectorContext,
    ConnectorNotReadyError,
    Content,
    Context,
    Effect,
    InboundRequest,
    Neighbours,
    PermanentSendError,
    Probe,
    Receipt,
    SecretRef,
    Trigger,
)
from upright.kit.late import late
from upright.testing.context import MemoryContext
from upright.testing.contract import ConnectorContract
from upright.testing.outside import Outside, Said

ROOM = "room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    id: int
    what: str
    text: str
    author: str
    at: datetime
    of: int = 0


@dataclass(slots=True)
class Service:
    """A log that many may read from any place on; ``grown`` wakes them."""

    now: Callable[[], datetime]
    lines: list[Line] = field(default_factory=list)
    grown: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, what: str, text: str, *, author: str = "ann", of: int = 0) -> Said:
        number = len(self.lines) + 1
        line = Line(id=number, what=what, text=text, author=author, at=self.now(), of=of or number)
        self.lines.append(line)
        grown, self.grown = self.grown, asyncio.Event()
        grown.set()
        return Said(native=str(line.of))


class Listener(Connector):
    """Reads the log from its cursor on."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.context: ConnectorContext | None = None

    async def validate(self) -> Probe:
        self.started()
        return Probe(ok=True, summary="It is there")

    async def start(self, context: ConnectorContext) -> None:
        context.secret(SecretRef("env:TOKEN"))
        self.context = context

    async def stop(self, timeout_s: float) -> None:
        self.context = None

    def started(self) -> ConnectorContext:
        if self.context is None:
            raise ConnectorNotReadyError("The source is not started")
        return self.context

    async def listen(self) -> None:
        context = self.started()
        cursor = await context.cursor()
        if cursor is None:
            cursor = str(len(self.service.lines))
            await context.emit((), cursor=cursor)
        at, known = int(cursor), len(self.service.lines)
        while True:
            grown = self.service.grown
            while at < len(self.service.lines):
                line = self.service.lines[at]
                at += 1
                told = self.told(line)
                await context.emit([late(told) if at <= known else told], cursor=str(at))
            await grown.wait()

    def told(self, line: Line) -> Trigger:
        kind = ActorKind.SELF if line.author == "us" else ActorKind.STRANGER
        facts = (("native_id", str(line.of)),) if line.what == "created" else ()
        return Trigger(
            kind=f"line.{line.what}",
            channel=Channel.CHAT,
            actor=Actor(id=line.author, kind=kind),
            content=Content(text=line.text),
            context=Context(
                thread=ROOM,
                edit_of="" if line.what == "created" else str(line.of),
                facts=facts,
            ),
            dedupe=(f"line:{line.id}",),
            occurred_at=line.at,
            raw=line.text.encode() or b"-",
        )

    async def backfill(self, since: str | None, until: datetime) -> AsyncIterator[Trigger]:
        for line in self.service.lines[:0]:  # it catches up by listening
            yield self.told(line)

    async def receive(self, request: InboundRequest) -> tuple[Trigger, ...]:
        raise AssertionError("it receives nothing")

    async def send(self, effect: Effect) -> Receipt:
        raise PermanentSendError("It sends nothing")

    async def neighbours(self, trigger: Trigger, before: int, after: int) -> Neighbours:
        return Neighbours()

    def capabilities(self) -> Capabilities:
        return Capabilities(listens=True)


@dataclass(slots=True)
class Room(Outside):
    service: Service
    make: Callable[[Service], Connector] = Listener

    def connector(self) -> Connector:
        return self.make(self.service)

    async def say(self, text: str) -> Said:
        return self.service.add("created", text)

    async def edit(self, said: Said, text: str) -> Said:
        return self.service.add("edited", text, of=int(said.native))

    async def delete(self, said: Said) -> Said:
        return self.service.add("deleted", "", of=int(said.native))

    async def say_as_us(self, text: str) -> Said:
        return self.service.add("created", text, author="us")


@pytest.mark.feature("common.event")
class TestListener(ConnectorContract):
    """An honest connector keeps the contract."""

    make: type[Listener] = Listener

    @asynccontextmanager
    async def outside(self, context: MemoryContext) -> AsyncIterator[Outside]:
        context.secrets["env:TOKEN"] = "a token for tests"
        yield Room(Service(context.now), type(self).make)


# ------------------------------------------------------------------ faulty ones
class Replaying(Listener):
    """Tells the past at its first start."""

    async def listen(self) -> None:
        if await self.started().cursor() is None:
            await self.started().emit((), cursor="0")
        await super().listen()


class Forgetful(Listener):
    """Begins at the end with each start."""

    async def listen(self) -> None:
        await self.started().emit((), cursor=str(len(self.service.lines)))
        await super().listen()


class Punctual(Listener):
    """Says of nothing that it comes late."""

    async def listen(self) -> None:
        context = self.started()
        cursor = await context.cursor()
        at = len(self.service.lines) if cursor is None else int(cursor)
        await context.emit((), cursor=str(at))
        while True:
            grown = self.service.grown
            for line in self.service.lines[at:]:
                at += 1
                await context.emit([self.told(line)], cursor=str(at))
            await grown.wait()


class Selfless(Listener):
    """Takes its own words for somebody's."""

    def told(self, line: Line) -> Trigger:
        return super().told(replace(line, author="somebody"))


class Editless(Listener):
    """Takes an edit for a new message."""

    def told(self, line: Line) -> Trigger:
        return super().told(replace(line, what="created"))


class Talkative(Listener):
    """Logs its token."""

    async def start(self, context: ConnectorContext) -> None:
        await super().start(context)
        token = context.secret(SecretRef("env:TOKEN")).reveal()
        context.log.debug("signed in with %s", token)


class Stubborn(Listener):
    """Does not stop in time."""

    async def stop(self, timeout_s: float) -> None:
        await asyncio.Event().wait()


FAULTS = [
    (Replaying, "test_at_the_very_first_nothing_of_the_past_is_told", ()),
    (Forgetful, "test_what_was_said_while_it_was_stopped_comes_once_in_order_and_late", ()),
    (Forgetful, "test_the_cursor_only_moves_on", ()),
    (Punctual, "test_what_was_said_while_it_was_stopped_comes_once_in_order_and_late", ()),
    (Selfless, "test_our_own_output_is_ours", ()),
    (Editless, "test_an_edit_is_no_new_message", ()),
    (Editless, "test_a_deletion_is_no_new_message", ()),
    pytest.param(
        Stubborn,
        "test_stopped_in_any_state_its_successor_hears_once",
        ("listening",),
        marks=pytest.mark.looptime,
    ),
]


@pytest.mark.parametrize(("faulty", "test", "given"), FAULTS)
async def test_a_faulty_connector_breaks_the_contract(
    faulty: type[Listener], test: str, given: tuple[str, ...]
) -> None:
    class Broken(TestListener):
        make: type[Listener] = faulty
        patience_s = 0.2

    with pytest.raises((AssertionError, TimeoutError)):
        await getattr(Broken(), test)(*given)


async def test_a_connector_that_logs_its_token_is_found(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(TestListener):
        make: type[Listener] = Talkative

    with pytest.raises(AssertionError):
        await Broken().test_secrets_stand_in_no_log_and_in_no_error(caplog)
