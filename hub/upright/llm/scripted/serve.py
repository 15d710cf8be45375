"""Serve: a scripted server as a running service, from a script's file to a clean end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

from upright.llm.scripted.script import Script, load
from upright.llm.scripted.server import ScriptedModel

SHUTDOWN_S: Final = 0.2


@asynccontextmanager
async def running(
    script: Script, host: str, port: int, *, lacks: Collection[str] = ()
) -> AsyncIterator[str]:
    """Run a server while the context is open, and give its base URL. Port 0 takes a free one."""
    app = ScriptedModel(script, lacks).application()
    runner = web.AppRunner(app, shutdown_timeout=SHUTDOWN_S, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield f"http://{host}:{_port(runner)}/v1"
    finally:
        await runner.cleanup()


async def serve(
    script: Path,
    host: str,
    port: int,
    ready_file: Path | None = None,
    *,
    stop: asyncio.Event | None = None,
    lacks: Collection[str] = (),
) -> None:
    """Serve until *stop* is set, or cancelled; *lacks* names what it can't do (see ``reflex``).

    *ready_file* gets one line, the client's ``base_url``; it appears whole, once the server
    answers.

    Raises:
        ScriptError: the script can't be used.
        OSError: the address is taken.
    """
    loaded = await asyncio.to_thread(load, script)
    async with running(loaded, host, port, lacks=lacks) as url:
        if ready_file is not None:
            await asyncio.to_thread(_announce, ready_file, f"{url}\n")
        await (stop or asyncio.Event()).wait()


def _port(runner: web.AppRunner) -> int:
    return int(runner.addresses[0][1])


def _announce(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
