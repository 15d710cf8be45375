"""The same on another real server: Xandikos, whose tokens are commits of git."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest

from fixtures.calendars import context, listening, said, settings
from fixtures.eventually import eventually_awaited
from fixtures.radicale import PYTHON
from fixtures.require import skip_or_fail

EVENT = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Example//Desk//EN\r\nBEGIN:VEVENT\r\nUID:{uid}\r\n"
    "DTSTAMP:20260601T090000Z\r\nDTSTART:202606{when}Z\r\nSUMMARY:{uid}\r\nEND:VEVENT\r\n"
    "END:VCALENDAR\r\n"
)


@pytest.fixture
def address() -> Iterator[str]:
    if not PYTHON.exists():
        skip_or_fail("xandikos", "make .venv-servers/.installed")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="xandikos-") as folder:
        home, listen = Path(folder), ("-l", "127.0.0.1", "-p", str(port))
        with (home / "log").open("wb") as log:
            command = (str(PYTHON), "-m", "xandikos", "serve", "-d", folder, "--defaults", *listen)
            state = ("--state-dir", str(home / "state"))
            process = subprocess.Popen([*command, *state], stdout=log, stderr=log)
            try:
                yield f"http://127.0.0.1:{port}/"
            finally:
                process.terminate()
                process.wait(5)


async def put(session: aiohttp.ClientSession, url: str, uid: str, when: str) -> None:
    body = EVENT.format(uid=uid, when=when)
    headers = {"Content-Type": "text/calendar"}
    target = f"{url}user/calendars/calendar/{uid}.ics"
    async with session.put(target, data=body, headers=headers) as answer:
        assert answer.status in {201, 204}


@pytest.mark.feature("calendar.discovery")
async def test_what_is_made_changed_and_deleted_is_told_once_each(address: str) -> None:
    async with aiohttp.ClientSession() as session:

        async def up() -> bool:
            try:
                async with session.get(address):
                    return True
            except aiohttp.ClientError:
                return False

        await eventually_awaited(up, within_s=25.0, every_s=0.05)
        await put(session, address, "old", "10T150000")
        async with listening(settings(address), context()) as watch:
            assert await watch.look() == []
            await put(session, address, "new", "11T150000")
            await put(session, address, "old", "12T150000")
            assert sorted(said(await watch.look())) == ["created New: new", "updated Changed: old"]
            async with session.delete(f"{address}user/calendars/calendar/new.ics") as answer:
                assert answer.status == 204
            assert said(await watch.look()) == ["deleted Gone: new"]
            assert await watch.look() == []
