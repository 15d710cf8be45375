"""Endpoint: what every peer of the intake bench shares: aiohttp, the HMAC, an answer of 202.

Only what is done with a verified body differs. This runs in the peers' environment, too.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import hmac
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from bench.payloads import SIGNING_KEY

Keep = Callable[[str, bytes], Awaitable[None]]
"""Makes a body durable, under its GUID."""


def application(keep: Keep) -> web.Application:
    """Return the endpoint."""
    secret = SIGNING_KEY.encode()

    async def receive(request: web.Request) -> web.Response:
        body = await request.read()
        wanted = "sha256=" + hmac.digest(secret, body, hashlib.sha256).hex()
        if not hmac.compare_digest(wanted, request.headers.get("X-Hub-Signature-256", "")):
            return web.json_response({"error": "signature"}, status=401)
        guid = request.headers["X-GitHub-Delivery"]
        await keep(guid, body)
        return web.json_response({"id": guid}, status=202)

    app = web.Application(client_max_size=2**20)
    app.router.add_post("/hooks/github", receive)
    return app


async def serve(keep: Keep, ready: Path) -> None:
    """Serve on a free port until SIGTERM; *ready* is told the address."""
    runner = web.AppRunner(application(keep), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    port = runner.addresses[0][1]
    await asyncio.to_thread(ready.write_text, f"http://127.0.0.1:{port}", encoding="ascii")
    await stop.wait()
    await runner.cleanup()


def arguments() -> argparse.Namespace:
    """Return where the database is, and the file that is told the address."""
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("ready", type=Path)
    return parser.parse_args()
