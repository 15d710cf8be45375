"""Links hub: the hub's side of device links with its real parts, and devices that it knows.

``python -m bench.programs.links_hub FOLDER PORT COUNT READY``; SIGTERM tells every link 1012.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from aiohttp import web

from bench.fleet import HUB_KEY, device_id, key_of
from bench.link import HubSide
from upright.devices.ports import DeviceState
from upright.store import schema
from upright.store.database import Store
from upright.store.tables import DEVICE
from upright.store.unit import Unit


def register(u: Unit, count: int) -> None:
    """Pair them all, at once."""
    rows = [
        {
            "id": device_id(number),
            "name": f"box {number}",
            "owner": "operator",
            "public_key": key_of(number).public,
            "state": DeviceState.ACTIVE.value,
            "caps_json": '["exec"]',
            "facts_json": "{}",
            "offered_json": "[]",
            "helper_json": "[]",
            "foreign_json": "[]",
            "remote": "",
            "approved_at_ms": u.now_ms,
        }
        for number in range(count)
    ]
    u.c.execute(DEVICE.insert(), rows)


async def main(folder: Path, port: int, count: int, ready: Path) -> None:
    """Serve until SIGTERM."""
    database = folder / "hub.db"
    is_new = not database.exists()
    if is_new:
        await asyncio.to_thread(schema.create, database)
    store = await asyncio.to_thread(Store.open, database)
    hub = HubSide(store, HUB_KEY)
    if is_new:
        await hub.units.write(lambda u: register(u, count))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    app = web.Application()
    app.router.add_get("/v1/device", hub.device)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=4096).start()
    at = runner.addresses[0][1]
    hub.hosts.add(f"127.0.0.1:{at}")
    await asyncio.to_thread(ready.write_text, str(at), encoding="ascii")
    async with asyncio.TaskGroup() as group:
        service = group.create_task(hub.dispatcher.run(), name="dispatch")
        await stop.wait()
        hub.links.close_all()
        await asyncio.sleep(0.5)
        service.cancel()
    await runner.cleanup()
    await store.close()


if __name__ == "__main__":
    where, port_, count_, ready_ = sys.argv[1:]
    asyncio.run(main(Path(where), int(port_), int(count_), Path(ready_)))
