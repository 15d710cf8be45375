"""Bell: a ring between the look and the wait is heard."""

from __future__ import annotations

import pytest

from upright.web.bell import Bell, rung

pytestmark = pytest.mark.looptime


async def test_a_ring_after_the_ticket_is_heard_however_late_one_waits() -> None:
    bell = Bell()
    ticket = bell.ticket()
    bell.ring()
    assert await rung(ticket, 1.0)


async def test_without_a_ring_the_wait_ends_in_time() -> None:
    bell = Bell()
    bell.ring()
    assert not await rung(bell.ticket(), 60.0)
