"""Serve: a scripted server as a running service, from a script's file to a clean end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from aiohttp import web

from upright.llm.scripted.script import load
from upright.llm.scripted.server import ScriptedModel

SHUTDOWN_S: Final = 1.0


async def serve(
    script: Path,
    host: str,
    port: int,
    ready_file: Path | None = None,
    *,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until *stop* is set, or cancelled. Port 0 takes a free one.

    *ready_file* gets one line, the client's ``base_url``; it appears whole, once the server
    answers.

    Raises:
        ScriptError: the script can't be used.
        OSError: the address is taken.
    """
    loaded = await asyncio.to_thread(load, script)
    runner = web.AppRunner(
        ScriptedModel(loaded).application(), shutdown_timeout=SHUTDOWN_S, access_log=None
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        if ready_file is not None:
            await asyncio.to_thread(_announce, ready_file, f"http://{host}:{_port(runner)}/v1\n")
        await (stop or asyncio.Event()).wait()
    finally:
        await runner.cleanup()


def _port(runner: web.AppRunner) -> int:
    return int(runner.addresses[0][1])


def _announce(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
