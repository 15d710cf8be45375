"""DBOS: an endpoint that enqueues one workflow a request, in PostgreSQL; no worker runs.

The workflow's id is the GUID, which is how DBOS drops what came twice.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSClient

from bench.programs.endpoint import arguments, serve

THREADS = 16
Foreign = Any  # dbos is not in our environment


async def main(client: Foreign, ready: Path) -> None:
    """Serve."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS))  # its async client works in threads

    async def keep(guid: str, body: bytes) -> None:
        options = {"queue_name": "hooks", "workflow_name": "handle", "workflow_id": guid}
        await client.enqueue_async(options, body.decode())

    await serve(keep, ready)


def prepared(database: str) -> Foreign:
    """Make the tables and the queue as an application does, then a client that only enqueues."""
    DBOS(config={"name": "bench", "system_database_url": database, "log_level": "ERROR"})
    DBOS.launch()
    DBOS.register_queue("hooks")
    DBOS.destroy()
    return DBOSClient(system_database_url=database, system_database_pool_size=THREADS)


if __name__ == "__main__":
    given = arguments()
    asyncio.run(main(prepared(given.database), given.ready))
