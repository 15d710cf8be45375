"""Server: one sandbox on 127.0.0.1, for as long as the context is open."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from aiohttp import web

from upright_slack.sandbox.api import Api, Tokens
from upright_slack.sandbox.control import Control
from upright_slack.sandbox.courier import Courier, Timing
from upright_slack.sandbox.faults import Faults
from upright_slack.sandbox.world import BOT_USER, TEAM, World

HOST: Final = "127.0.0.1"
GRACE_S: Final = 1.0
MAX_BODY_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a sandbox is started. With ``hook_url`` events go there, signed; else by a socket."""

    bot_token: str
    app_token: str = ""
    secret: str = ""
    port: int = 0
    hook_url: str = ""
    team: str = TEAM
    bot_user: str = BOT_USER
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """A sandbox that listens: ``api_url`` is what a source's settings name."""

    url: str
    world: World
    courier: Courier
    api: Api

    @property
    def api_url(self) -> str:
        """Return the address of the Web API."""
        return f"{self.url}/api"

    @property
    def control(self) -> str:
        """Return the address of the control API."""
        return f"{self.url}/_sandbox"


@asynccontextmanager
async def running(options: Options, *, now: Callable[[], datetime]) -> AsyncIterator[Sandbox]:
    """Run a sandbox inside the context; leaving it closes the port and stops all deliveries.

    Raises:
        OSError: the port is taken.
    """
    closing, faults = asyncio.Event(), Faults()
    world = World(now, team=options.team, bot_user=options.bot_user)
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    async with asyncio.TaskGroup() as tasks:
        courier = Courier(world, tasks, faults, secret=options.secret, timing=options.timing)
        courier.hook_url = options.hook_url
        listener = _listen(options.port)
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        api = Api(
            world=world,
            courier=courier,
            faults=faults,
            tokens=Tokens(bot=options.bot_token, app=options.app_token),
            base=url,
            closing=closing,
        )
        app.add_routes(Control(api).routes())
        app.add_routes(api.routes())
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE_S)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            yield Sandbox(url=url, world=world, courier=courier, api=api)
        finally:
            closing.set()
            courier.close()
            courier.cut()
            await runner.cleanup()


def _listen(port: int) -> socket.socket:
    """Return a bound socket, so that the port is known before anything is said of it."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.settimeout(0)
    except OSError:
        listener.close()
        raise
    return listener
