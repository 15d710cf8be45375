"""Procrastinate: how long from a job's defer to its first line, one at a time, in one process."""

from __future__ import annotations

import argparse
import asyncio
import json
from time import perf_counter

from procrastinate import App, PsycopgConnector

START_S = 30.0
PAUSE_S = 0.03  # between two jobs: the worker is idle again


async def measure(database: str, samples: int) -> list[float]:
    """Defer, wait for the start, again and again; the worker has its default settings."""
    app = App(connector=PsycopgConnector(conninfo=database))
    started: asyncio.Queue[tuple[int, float]] = asyncio.Queue()

    async def handle(number: int) -> None:
        started.put_nowait((number, perf_counter()))

    task = app.task(name="handle", queue="hooks")(handle)

    async def once(number: int) -> float:
        await asyncio.sleep(PAUSE_S)
        began = perf_counter()
        await task.defer_async(number=number)
        async with asyncio.timeout(START_S):
            came, at = await started.get()
        assert came == number
        return 1000 * (at - began)

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        work = app.run_worker_async(queues=["hooks"], install_signal_handlers=False)
        async with asyncio.TaskGroup() as group:
            worker = group.create_task(work, name="worker")
            took = [await once(number) for number in range(samples + 1)]
            worker.cancel()
    return took[1:]  # the first one waits for the worker's start


def main() -> None:
    """Measure, and print milliseconds as a JSON list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database")
    parser.add_argument("--samples", type=int, required=True)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.database, given.samples))))


if __name__ == "__main__":
    main()
