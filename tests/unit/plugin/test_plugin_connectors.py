"""Connectors: sources under their names; one that can't be loaded takes nothing with it."""

from __future__ import annotations

import asyncio

import pytest

from fixtures.plugins import MakePlugin, Recorded
from upright.api import ConnectorNotReadyError, InboundRequest, Probe
from upright.core.connector import ConnectorState
from upright.plugin.connectors import Connectors, open_connectors
from upright.plugin.life import LifeParts
from upright.plugin.manifest import listed
from upright.settings.shape import SourceSection

pytestmark = pytest.mark.looptime

CODE = """
from dataclasses import dataclass
from upright.api import Capabilities, ConnectorType, hookimpl

@dataclass(frozen=True, kw_only=True)
class Keys:
    room: str

class Room:
    async def start(self, context): pass
    async def listen(self): pass
    async def stop(self, timeout_s): pass
    async def receive(self, request): return ()
    def capabilities(self): return Capabilities(receives=True)

@hookimpl
def upright_connectors():
    return [ConnectorType(kind="{name}", summary="", settings=Keys, make=lambda s, k: Room())]
"""
REQUEST = InboundRequest(headers={}, body=b"")


@pytest.fixture
def connectors(make_plugin: MakePlugin, parts: LifeParts) -> Connectors:
    plugins = listed([make_plugin("pl_room", code=CODE), make_plugin("pl_bad", code="1/0")])
    sources = {
        "good": SourceSection(connector="pl_room", keys={"room": "a"}),
        "typo": SourceSection(connector="pl_room", keys={"rom": "a"}),
        "bad": SourceSection(connector="pl_bad"),
    }
    return open_connectors(sources, plugins, parts, file="f.toml")


async def test_sources_run_beside_a_broken_one(connectors: Connectors, recorded: Recorded) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(connectors.run())
        await recorded.until(ConnectorState.READY)
        states = {each.source: each.state.value for each in connectors.standings()}
        assert states == {"bad": "failed", "good": "ready", "typo": "failed"}
        assert await connectors.receive("good", REQUEST) == ()
        with pytest.raises(ConnectorNotReadyError, match="ZeroDivisionError"):
            await connectors.receive("bad", REQUEST)
        task.cancel()
    said = {each.source: each.reason for each in recorded.standings if each.state == "failed"}
    assert said["typo"] == 'sources.typo.rom in f.toml: there is no such key, did you mean "room"?'


@pytest.fixture
def deaf(make_plugin: MakePlugin, parts: LifeParts) -> Connectors:
    code = CODE.replace("    async def listen(self): pass\n", "")
    sources = {"deaf": SourceSection(connector="pl_deaf", keys={"room": "a"})}
    plugins = listed([make_plugin("pl_deaf", code=code)])
    return open_connectors(sources, plugins, parts, file="f.toml")


async def test_a_connector_that_lacks_a_method_fails_alone(
    deaf: Connectors, recorded: Recorded
) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(deaf.run())
        await recorded.until(ConnectorState.FAILED)
        (standing,) = deaf.standings()
        assert "no attribute 'listen'" in standing.reason
        task.cancel()


@pytest.fixture
def resting(make_plugin: MakePlugin, parts: LifeParts) -> Connectors:
    plugins = listed([make_plugin("pl_bad", code="1/0")])
    sources = {"off": SourceSection(connector="pl_bad", enabled=False)}
    return open_connectors(sources, plugins, parts, file="f.toml")


async def test_a_disabled_source_stays_listed_and_nothing_of_it_is_imported(
    resting: Connectors,
) -> None:
    connectors = resting
    (standing,) = connectors.standings()
    assert (standing.state, standing.reason) == ("paused", "disabled in the configuration")
    probe = await connectors.validate("off")
    assert probe == Probe(ok=False, summary="paused: disabled in the configuration")
    with pytest.raises(ConnectorNotReadyError, match="paused"):
        await connectors.receive("off", REQUEST)
    assert await connectors.validate("nothing") is None
    assert connectors.dead("off").count == connectors.dead("nothing").count == 0


async def test_what_no_source_names_is_unknown(parts: LifeParts) -> None:
    connectors = open_connectors({}, (), parts, file="f.toml")
    assert connectors.capabilities("x") is None
    assert not connectors.retry("x")
    with pytest.raises(ConnectorNotReadyError, match="no such source"):
        await connectors.receive("x", REQUEST)
