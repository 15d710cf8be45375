"""The setting of pass-through, each value on a real database (B6.9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.still_hub import ANN, CI, EVE, US, StillHub, trigger
from upright.api import Actor, Trigger
from upright.core.routing import PassThrough
from upright.core.trigger import Disposition
from upright.core.work import WorkItem
from upright.store import handing, intake
from upright.store.tables import DELIVERY, SESSION

RED = trigger(native="red-1", joins=("branch:fix",))


async def followed(hub: StillHub, passes: PassThrough) -> WorkItem:
    """Let a worker follow a thread and rest, under this setting."""
    item = await hub.opened(RED)
    await hub.asleep(item)
    hub.policy = replace(hub.policy, passes=passes)
    return item


async def inbox(hub: StillHub, session: str) -> list[str]:
    return [one.id for one in await hub.see(lambda c: intake.unread(c, session))]


@pytest.mark.clause("B6.9", "B6.1")
@pytest.mark.parametrize(
    ("passes", "by", "to_worker", "to_router"),
    [
        (PassThrough.ALL, ANN, True, False),
        (PassThrough.ALL, CI, True, False),
        (PassThrough.ALL, EVE, True, False),
        (PassThrough.PEOPLE, ANN, True, False),
        (PassThrough.PEOPLE, EVE, True, False),
        (PassThrough.PEOPLE, CI, True, True),
        (PassThrough.NONE, ANN, False, True),
        (PassThrough.NONE, EVE, False, True),
        (PassThrough.NONE, CI, False, True),
    ],
)
async def test_who_gets_what_comes_on_a_followed_thread(
    hub: StillHub, passes: PassThrough, by: Actor, *, to_worker: bool, to_router: bool
) -> None:
    item = await followed(hub, passes)
    came = await hub.one(trigger("comment.created" if by is not CI else "ci.passed", by=by))
    router = await hub.router()
    assert (await inbox(hub, item.session) == [came.id]) is to_worker
    assert (await inbox(hub, router) == [came.id]) is to_router
    assert (item.session in came.woke) is to_worker
    assert (router in came.woke) is to_router
    assert came.disposition is (Disposition.WOKE if to_worker else Disposition.STARTED)


@pytest.mark.clause("B6.9", "B3.3")
@pytest.mark.parametrize("passes", list(PassThrough))
@pytest.mark.parametrize("given", [trigger("ci.queued"), trigger("comment.created", by=US)])
async def test_what_wakes_nobody_is_context_for_the_worker_under_each_value(
    hub: StillHub, passes: PassThrough, given: Trigger
) -> None:
    item = await followed(hub, passes)
    came = await hub.one(given)
    assert (came.disposition, came.woke) == (Disposition.JOINED, ())
    assert await inbox(hub, item.session) == [came.id]
    assert (await hub.row(SESSION, kind="router"))["ready_at_ms"] is None


@pytest.mark.clause("B6.9")
async def test_with_none_the_router_forwards_and_the_worker_has_it_once(hub: StillHub) -> None:
    item = await followed(hub, PassThrough.NONE)
    came = await hub.one(trigger("comment.created", by=ANN))
    router = await hub.router()
    stored = await hub.see(lambda c: intake.read(c, came.id))
    assert stored is not None
    first = await hub.do(lambda u: handing.forward(u, stored, item, router))
    again = await hub.do(lambda u: handing.forward(u, stored, item, router))
    assert (first.given, again.given, first.follows) == (True, False, False)
    assert await inbox(hub, item.session) == [came.id]
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is not None
    assert len(await hub.rows(DELIVERY, session_id=item.session, trigger_id=came.id)) == 1


@pytest.mark.clause("B6.9", "B17.5")
@pytest.mark.parametrize("passes", list(PassThrough))
async def test_without_a_model_each_value_passes_through_and_nothing_waits_for_a_router(
    hub: StillHub, passes: PassThrough
) -> None:
    item = await followed(hub, passes)
    hub.policy = replace(hub.policy, routes=False)
    came = await hub.one(trigger("comment.created", by=ANN))
    assert came.woke == (item.session,)
