"""What the tests of calendars share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fixtures.radicale import Desk, Radicale, radicale_server, user

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
