"""Echo: a bare websocket server, what a link costs at the least: ``… echo READY``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aiohttp import WSMsgType, web


async def serve(request: web.Request) -> web.StreamResponse:
    """Send back whatever comes."""
    response = web.WebSocketResponse(compress=False)
    await response.prepare(request)
    async for message in response:
        if message.type is WSMsgType.TEXT:
            await response.send_str(message.data)
    return response


async def main(ready: Path) -> None:
    """Serve until the process is ended."""
    app = web.Application()
    app.router.add_get("/v1/device", serve)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    await asyncio.to_thread(ready.write_text, str(runner.addresses[0][1]), encoding="ascii")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
