"""Server: one sandbox on 127.0.0.1, for as long as the context is open."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from aiohttp import web

from upright_ci.gitlab.sandbox.control import Control
from upright_ci.gitlab.sandbox.postman import Postman
from upright_ci.gitlab.sandbox.rest import Rest
from upright_ci.gitlab.sandbox.story import Story
from upright_ci.gitlab.sandbox.world import World

HOST: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
GRACE_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a sandbox is started. ``login`` is whom ``token`` belongs to; port 0: any free one."""

    token: str
    secret: str
    login: str = "upright-bot"
    port: int = 0
    hook_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """A sandbox that listens at ``url``."""

    url: str
    story: Story
    rest: Rest


@asynccontextmanager
async def running(
    options: Options, *, now: Callable[[], datetime], new_guid: Callable[[], str]
) -> AsyncIterator[Sandbox]:
    """Run a sandbox inside the context; leaving it closes the port.

    Raises:
        OSError: the port is taken.
    """
    closing, listener = asyncio.Event(), socket.create_server((HOST, options.port))
    listener.settimeout(0)
    base = f"http://{HOST}:{listener.getsockname()[1]}"
    postman = Postman(url=options.hook_url, token=options.secret, base=base, new_guid=new_guid)
    world = World(now=now, login=options.login)
    story = Story(world=world, base=base, postman=postman)
    rest = Rest(story=story, token=options.token, closing=closing)
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app.add_routes(Control(story=story, rest=rest).routes())
    app.add_routes(rest.routes())
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE_S)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield Sandbox(url=base, story=story, rest=rest)
    finally:
        closing.set()
        await runner.cleanup()
