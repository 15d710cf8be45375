"""Serve: the hub's life as a process: open, run, drain within ten seconds (A6)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

from upright.api import Secret, SecretRef
from upright.compose.given import roll
from upright.compose.hub import Hub, build
from upright.compose.mind import keys_of
from upright.compose.roots import Roots
from upright.engine.clock import SortableIds, SystemClock
from upright.engine.embedded import recover
from upright.engine.signals import DRAIN
from upright.engine.units import Units
from upright.settings.home import Address
from upright.settings.rules import write_rules
from upright.settings.secrets import Secrets
from upright.settings.shape import Settings
from upright.store import rules, sources
from upright.store.address import Address as DatabaseAddress
from upright.store.address import address
from upright.store.opening import open_storage
from upright.store.storage import Storage
from upright.store.unit import Unit
from upright.web.app import make_app

log = logging.getLogger(__name__)

SOURCES_S: Final = 5.0

Ready = Callable[[str], None]
Open = Callable[[DatabaseAddress, Callable[[], float]], Awaitable[Storage]]


def serve(
    settings: Settings,
    env: Mapping[str, str],
    *,
    ready: Ready,
    open_store: Open = open_storage,
) -> None:
    """Run a hub until SIGTERM or SIGINT; *ready* is told its address once it listens.

    *open_store* opens the database: the kill bench brings a store of its own.

    Raises:
        StoreInUseError: another hub has the database.
        RevisionError: the database needs ``upright db migrate``, or isn't there yet.
        StoreUnavailableError: the database can't be read or reached.
        OSError: the address can't be listened on.
        SecretMissingError: the database's password or the model's key can't be read.
    """
    asyncio.run(_main(settings, env, ready, open_store))


async def _main(settings: Settings, env: Mapping[str, str], ready: Ready, open_store: Open) -> None:
    stop = asyncio.Event()
    _on_signals(stop.set)
    password = await _secret(settings, env, settings.database.password)
    where = address(settings, password)
    store = await open_store(where, roll)
    try:
        listening = socket.create_server((settings.hub.host, settings.hub.port), backlog=512)
        port = int(listening.getsockname()[1])
        oidc = await _secret(settings, env, settings.auth.client_secret)
        roots = Roots(settings=settings, store=store, env=env, port=port, where=where, oidc=oidc)
        hub_id = await _begin(roots)
        keys = await keys_of(settings.model, lambda key: _secret(settings, env, key))
        hub = await asyncio.to_thread(build, roots, hub_id, keys)
        await run(hub, listening, stop, ready)
    finally:
        await store.close()


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        if sys.platform != "win32":
            loop.add_signal_handler(number, stop)


async def _begin(roots: Roots) -> str:
    """Derive everything from the tables: what a dead hub held is free again."""
    clock = SystemClock()
    units = Units(roots.store, clock, SortableIds(clock), committed=lambda: None)
    own_rules = write_rules(roots.settings.rules)

    def unit(u: Unit) -> str:
        freed = recover(u)
        sources.keep_only(u.c, frozenset(roots.settings.sources))
        rules.take_over(u, own_rules)
        log.info("hub.recovered", extra=freed)
        return sources.hub_id(u)

    return await units.write(unit)


async def _secret(
    settings: Settings, env: Mapping[str, str], reference: SecretRef | None
) -> Secret | None:
    if reference is None:
        return None
    found = (await Secrets(env, settings.home).fetch([reference]))[reference]
    if isinstance(found, Secret):
        return found
    raise found


async def run(hub: Hub, listening: socket.socket, stop: asyncio.Event, ready: Ready) -> None:
    """Run a hub's parts until *stop* is set, then bring them to rest in order."""
    web_runner = web.AppRunner(
        make_app(hub.web), access_log=None, handle_signals=False, shutdown_timeout=2.0
    )
    await web_runner.setup()
    await hub.growth.begin()
    await hub.agents.begin()
    keep = hub.supervisor.keep
    async with asyncio.TaskGroup() as group:
        turns = group.create_task(keep("engine", lambda: _turns(hub)), name="engine")
        services = [
            group.create_task(keep(name, service), name=name)
            for name, service in (
                ("intake", hub.intake.run),
                ("timers", hub.timers.run),
                ("oracle", hub.watchman.run),
                ("devices", hub.dispatcher.run),
                ("outward", hub.sender.run),
                ("notices", hub.notices.run),
                ("homes", hub.agents.mirror.run),
                ("sources", lambda: hub.connectors.run(hub.reconciling)),
                *hub.growth.services().items(),
            )
        ]
        await _try_sources(hub)
        await web.SockSite(web_runner, listening).start()
        url = f"http://{hub.settings.hub.host}:{listening.getsockname()[1]}"
        address = Address(url=url, pid=os.getpid())
        await asyncio.to_thread(hub.home.write_address, address)
        log.info("hub.ready", extra={"url": url})
        ready(url)
        await stop.wait()
        await _drain(hub, web_runner, turns)
        for service in services:
            service.cancel()
    await asyncio.to_thread(hub.home.forget_address)
    log.info("hub.stopped")


async def _try_sources(hub: Hub) -> None:
    """Let the sources start first: a webhook that is refused meanwhile may never come again.

    Who calls already waits in the socket's queue.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SOURCES_S):
            await hub.connectors.tried()


async def _turns(hub: Hub) -> None:
    """Run turns; without a model nothing is claimed, and what waits keeps waiting."""
    if hub.runner is None or hub.model is None:
        await hub.engine.drained()
        return
    await hub.model.start()
    await hub.engine.run(hub.runner)


async def _drain(hub: Hub, web_runner: web.AppRunner, turns: asyncio.Task[None]) -> None:
    """Let running turns reach a safe point, tell devices, close the doors."""
    log.info("hub.draining")
    hub.engine.drain()
    hub.signals.notify(DRAIN)
    done, _ = await asyncio.wait([turns], timeout=hub.settings.limits.drain_s)
    if not done:
        turns.cancel()
    hub.links.close_all()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(hub.settings.limits.drain_s):
            await web_runner.cleanup()
    if hub.model is not None:
        await hub.model.stop()
