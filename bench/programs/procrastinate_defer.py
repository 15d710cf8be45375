"""Procrastinate: an endpoint that defers one job a request, in PostgreSQL; no worker runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from procrastinate import App, PsycopgConnector

from bench.programs.endpoint import arguments, serve


async def main(database: str, ready: Path) -> None:
    """Serve."""
    app = App(connector=PsycopgConnector(conninfo=database, min_size=4, max_size=16))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        task = app.configure_task("handle", queue="hooks")

        async def keep(guid: str, body: bytes) -> None:
            await task.defer_async(guid=guid, body=body.decode())

        await serve(keep, ready)


if __name__ == "__main__":
    given = arguments()
    asyncio.run(main(given.database, given.ready))
