"""Load: some clients of one endpoint, each with a connection of its own, as fast as it answers.

Every body is new, signed before the clock starts. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter
from urllib.parse import urlsplit

from bench.keepalive import KeepAlive, connect
from bench.payloads import MAKERS, request
from bench.tables import percentile


@dataclass(slots=True)
class Run:
    """What is left to send, and what has come back."""

    requests: list[bytes]
    until: float = 0.0
    took: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    async def client(self, connection: KeepAlive) -> None:
        """Send until the time or the bodies have run out."""
        while self.requests and perf_counter() < self.until:
            status, seconds = await connection.ask(self.requests.pop())
            self.took.append(seconds)
            self.statuses[status] += 1


async def load(url: str, requests: list[bytes], clients: int, seconds: float) -> dict[str, object]:
    """Put the load on; return the figures."""
    run = Run(requests)
    connections = [await connect(url) for _ in range(clients)]
    for connection in connections:  # what a server does once a connection is not what is measured
        await connection.ask(requests.pop())
    began = perf_counter()
    run.until = began + seconds
    async with asyncio.TaskGroup() as group:
        for connection in connections:
            group.create_task(run.client(connection), name="client")
    whole = perf_counter() - began
    for connection in connections:
        connection.close()
    bad = {str(status): n for status, n in run.statuses.items() if status != 202}
    return {
        "per_s": len(run.took) / whole,
        "p50_ms": 1000 * percentile(run.took, 0.50),
        "p99_ms": 1000 * percentile(run.took, 0.99),
        "requests": len(run.took),
        "ran_out": not run.requests,
        "bad": bad,
    }


def main() -> None:
    """Make the requests, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--size", choices=sorted(MAKERS), required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--requests", type=int, required=True, help="at most so many")
    parser.add_argument("--first", type=int, required=True, help="the serial number to begin with")
    given = parser.parse_args()
    make, host = MAKERS[given.size], urlsplit(given.url).netloc
    serials = range(given.first, given.first + given.requests)
    requests = [request(host, f"guid-{serial}", *make(serial)) for serial in serials]
    requests.reverse()
    print(json.dumps(asyncio.run(load(given.url, requests, given.clients, given.seconds))))


if __name__ == "__main__":
    main()
