"""Server: one sandbox on 127.0.0.1, for as long as the context is open."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import aiohttp
from aiohttp import web

from upright_github.sandbox.actions import Actions
from upright_github.sandbox.control import Control
from upright_github.sandbox.faults import Faults
from upright_github.sandbox.hook_rest import HookRest
from upright_github.sandbox.postman import Hook, Postman
from upright_github.sandbox.rest import Rest
from upright_github.sandbox.review_rest import ReviewRest
from upright_github.sandbox.reviews import Reviews
from upright_github.sandbox.shapes import Shapes
from upright_github.sandbox.story import Story
from upright_github.sandbox.world import World

HOST: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 4 * 1024 * 1024
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
    """A sandbox that listens: ``url`` is the address of its API and of its pages."""

    url: str
    world: World
    story: Story
    rest: Rest
    reviews: Reviews
    hooks: HookRest
    actions: Actions

    @property
    def control(self) -> str:
        """Return the address of the control API."""
        return f"{self.url}/_sandbox"


@asynccontextmanager
async def running(
    options: Options, *, now: Callable[[], datetime], new_guid: Callable[[], str]
) -> AsyncIterator[Sandbox]:
    """Run a sandbox inside the context; leaving it closes the port and stops all deliveries.

    Raises:
        OSError: the port is taken.
    """
    closing, faults = asyncio.Event(), Faults()
    world = World(now=now, login=options.login)
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    async with asyncio.TaskGroup() as tasks, aiohttp.ClientSession() as session:
        postman = Postman(tasks, session, now=now, new_guid=new_guid, faults=faults)
        listener = _listen(options.port)
        story = Story(world, Shapes(f"http://{HOST}:{listener.getsockname()[1]}", world), postman)
        rest = Rest(story=story, token=options.token, faults=faults, closing=closing)
        reviews, hooks, actions = Reviews(story), HookRest(rest), Actions(story)
        more = (ReviewRest(rest, reviews), hooks, actions)
        rest.more = tuple(route for part in more for route in part.routes())
        app.add_routes(actions.blobs())
        app.add_routes(Control(rest, options.secret).routes())
        app.add_routes(rest.routes())
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE_S)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            if options.hook_url:
                hook_id = world.new_id()
                story.hook(Hook(id=hook_id, url=options.hook_url, secret=options.secret))
            yield Sandbox(
                url=story.shapes.base,
                world=world,
                story=story,
                rest=rest,
                reviews=reviews,
                hooks=hooks,
                actions=actions,
            )
        finally:
            closing.set()
            postman.close()
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
