"""P10, the fast path: model calls for a thousand noise triggers, with the gate's rules and without.

Noise is what a busy repository sends all day: checks that were queued or began, pushes, and bots
that comment. Without the gate, everything that comes is explicit, and the router is woken by it.
"""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlsplit

from bench import model
from bench.keepalive import connect
from bench.model import Heard
from bench.payloads import noise, request
from bench.tables import Report, Table, number
from bench.world import SOURCE, World

QUIET_S: Final = 1.5  # without another model call: all is told
CONFIG: Final = """\
[model]
base_url = "{model}"
name = "bench"

{source}
{rules}
[logs]
level = "warning"
"""
ALL: Final = """\
[[rules]]
name = "everything to the model"
verdict = "explicit"
"""
NOTES: Final = (
    "the goal is at most 5 calls for 1 000 noise triggers, with the gate on",
    (
        "one client, one trigger at a time: what comes while the router is busy is taken as one "
        "batch, so even without the gate there are fewer calls than triggers"
    ),
)


async def run(world: World) -> Report:
    """Send the same noise to a hub with the gate's rules, and to one whose only rule is yes."""
    triggers = world.pick(1000, 30)
    calls = {"on": await _calls(world, triggers, ""), "off": await _calls(world, triggers, ALL)}
    rows = [
        (f"gate {name}", number(count), number(1000 * count / triggers))
        for name, count in calls.items()
    ]
    columns = ("", f"model calls for {triggers} noise triggers", "for 1 000")
    heading = "P10 fast path: model calls for noise"
    return Report(tables=[Table(heading=heading, columns=columns, rows=rows, notes=NOTES)])


async def _calls(world: World, triggers: int, rules: str) -> int:
    async with model.serving() as (heard, base):
        hub = await world.hub(CONFIG.format(model=base, source=SOURCE, rules=rules))
        connection = await connect(hub.url)
        try:
            host = urlsplit(hub.url).netloc
            for serial in range(1, triggers + 1):
                status, _ = await connection.ask(request(host, f"guid-{serial}", *noise(serial)))
                assert status == 202, status
            return await _settled(heard)
        finally:
            connection.close()
            await world.end(hub.child)


async def _settled(heard: Heard) -> int:
    """Return how many calls there were, once none has come for a while."""
    before = -1
    while before != (now := heard.routers + heard.workers.qsize()):
        before = now
        await asyncio.sleep(QUIET_S)
    return now
