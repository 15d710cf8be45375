"""From Slack into the real store: what comes by many roads, and over restarts, is stored once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from fixtures.connector import MemoryContext
from fixtures.eventually import eventually, eventually_awaited
from fixtures.slack import ANN, DEV, ME, WITHIN_S, listening, memory, sandbox, started
from fixtures.still_hub import StillHub
from upright.api import ConnectorNotReadyError, Trigger
from upright.store.tables import TRIGGER
from upright_slack.sandbox.faults import CallFault, CallRule, EventFault, EventRule

pytestmark = pytest.mark.timeout(120)  # fifty transactions on a busy machine


@dataclass(slots=True, kw_only=True)
class HubContext(MemoryContext):
    """A context whose triggers go into a real store."""

    hub: StillHub

    async def emit(self, triggers: Sequence[Trigger], *, cursor: str | None = None) -> None:
        await self.hub.accept(*triggers, cursor=cursor)
        await MemoryContext.emit(self, triggers, cursor=cursor)

    async def stored(self, count: int) -> list[str]:
        """Return the kinds of what is stored once it is *count*."""

        async def look() -> list[str]:
            rows = await self.hub.rows(TRIGGER)
            return [str(row["kind"]) for row in rows] if len(rows) >= count else []

        return await eventually_awaited(look, within_s=WITHIN_S)


@pytest.mark.clause("B2.2")
@pytest.mark.case("OC/58443")
async def test_one_message_by_three_roads_fifty_times_and_over_a_restart_is_stored_once(
    hub: StillHub,
) -> None:
    context = HubContext(source="slack", secrets=memory().secrets, hub=hub)
    async with sandbox(context) as at:
        async with listening(at, context) as ears:
            event = at.world.post(DEV, ANN, f"<@{ME}> look")
            ears.tell(event)
            ears.tell({**event, "type": "app_mention"})
            for _ in range(24):
                at.courier.again("Ev000000001")
            await ears.settled()
        await hub.reopen()
        context.cursors[:] = context.cursors[:1]  # a cursor that was not stored any more
        async with listening(at, context) as again:
            for _ in range(24):
                at.courier.again("Ev000000001")
            again.say("the end")
            await again.settled()
            assert await context.stored(2) == ["message.created"] * 2


@pytest.mark.case("SP/1446")
async def test_a_next_socket_that_fails_once_is_tried_again_and_nothing_is_missed(
    hub: StillHub,
) -> None:
    context = HubContext(source="slack", secrets=memory().secrets, hub=hub)
    async with sandbox(context) as at, started(at, context) as connector:
        async with listening(at, context) as ears:
            ears.say("one")
            await context.stored(1)
        rule = CallRule(fault=CallFault.ERROR_503, method="apps.connections.open")
        at.api.faults.calls.append(rule)
        at.api.faults.events.append(EventRule(fault=EventFault.LOSE))
        at.courier.deliver(at.world.post(DEV, ANN, "missed"))
        with pytest.raises(ConnectorNotReadyError):
            await connector.listen()  # as its life does, which waits a second and tries anew
        async with listening(at, context):
            await eventually(lambda: len(context.emitted) >= 2, within_s=WITHIN_S)
            assert len(await context.stored(2)) == 2
    assert dict(context.emitted[-1].context.facts)["late"] == "yes"
