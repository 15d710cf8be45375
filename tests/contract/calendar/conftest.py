"""What the tests of calendars share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from fixtures.databases import opened
from fixtures.feed import FeedServer, feeding
from fixtures.radicale import Desk, Radicale, radicale_server, user
from fixtures.still_hub import StillHub
from upright.store.address import Address

__all__ = ["radicale_server"]


@pytest.fixture
async def radicale(radicale_server: Radicale) -> Radicale:
    await radicale_server.up()
    return radicale_server


@pytest.fixture
async def desk(radicale: Radicale) -> AsyncIterator[Desk]:
    desk = Desk(server=radicale, user=user())
    await desk.make()
    yield desk
    await desk.session.close()


@pytest.fixture
async def feed() -> AsyncIterator[FeedServer]:
    async with feeding() as server:
        yield server


@pytest.fixture
async def still(make_address: Callable[[], Address]) -> AsyncIterator[StillHub]:
    where = make_address()
    hub = StillHub(await opened(where), where)
    yield hub
    await hub.store.close()
