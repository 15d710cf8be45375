"""The owner's line ends whenever it is told to, and leaves no connection open."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fixtures.eventually import eventually_awaited
from upright_execd.ownerline import OwnerLine
from upright_execd.paths import Paths, make_private, paths_in
from upright_execd.peer import connect
from upright_execd.shims import Shims


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = paths_in(tmp_path)
    make_private(paths.state)
    return paths


def _nothing(_question: Mapping[str, Any]) -> Mapping[str, Any]:
    return {}


def _left_open() -> list[str]:
    """Say what is open and nobody's."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        gc.collect()
    return [str(one.message) for one in seen]


async def _called(paths: Paths) -> socket.socket:
    async def call() -> socket.socket | None:
        with suppress(OSError):  # it is not there yet, or nobody listens yet
            return await asyncio.to_thread(connect, paths.socket, 5)
        return None

    return await eventually_awaited(call)


async def _is_hung_up_on(client: socket.socket) -> bool:
    with client, suppress(ConnectionResetError):  # it was still waiting to be taken
        return await asyncio.to_thread(client.recv, 1) == b""
    return True


@pytest.mark.parametrize("turns", range(6))
async def test_who_calls_as_the_daemon_stops_is_hung_up_on(paths: Paths, turns: int) -> None:
    async with asyncio.TaskGroup() as group:
        line = group.create_task(OwnerLine(paths, _nothing).run())
        client = await _called(paths)
        for _ in range(turns):  # wherever it is with the call
            await asyncio.sleep(0)
        line.cancel()
    assert await _is_hung_up_on(client)
    assert not _left_open()


@pytest.mark.may_block  # opens and closes as the threads of a daemon do
async def test_a_thread_that_is_late_opens_no_nursery_behind_the_close() -> None:
    _left_open()
    shims = Shims()
    shims.open()
    shims.close()
    shims.open()
    del shims
    assert not _left_open()
