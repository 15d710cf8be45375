"""Playing: how a sandbox of a plugin is served from the command line, until a signal."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from upright.kit.groups import first

S = TypeVar("S")


def play(
    sandbox: AbstractAsyncContextManager[S],
    told: Callable[[S], Mapping[str, str]],
    *,
    ready_file: Path | None,
    say: Callable[[str], object],
) -> str:
    """Serve until SIGINT or SIGTERM; return why it could not, else nothing.

    Once it listens, what it *told* of itself is said as one line of JSON, and written whole to
    *ready_file*.
    """
    why = ""
    try:
        asyncio.run(_serve(sandbox, told, ready_file, say))
    except* OSError as errors:
        why = f"The sandbox can't run: {first(errors)}"
    return why


def now() -> datetime:
    """Return the time in whole seconds, as most services tell it."""
    return datetime(*time.gmtime()[:6], tzinfo=UTC)


def new_guid() -> str:
    """Return a random identifier for a delivery."""
    return str(uuid.UUID(bytes=secrets.token_bytes(16), version=4))


async def _serve(
    sandbox: AbstractAsyncContextManager[S],
    told: Callable[[S], Mapping[str, str]],
    ready_file: Path | None,
    say: Callable[[str], object],
) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    async with sandbox as running:
        text = json.dumps(told(running))
        if ready_file is not None:
            await asyncio.to_thread(_write, ready_file, text)
        say(text)
        await stop.wait()


def _write(path: Path, text: str) -> None:
    """Write at once: whoever waits for the file finds it whole."""
    part = path.with_name(path.name + ".part")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(path)
