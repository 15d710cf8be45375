"""Own output: the others on a thread see it at its receipt, and the provider's echo is no news."""

from __future__ import annotations

import pytest

from fixtures.still_hub import ANN, PULL, US, StillHub, trigger
from upright.api import EffectClass, Receipt, Trigger
from upright.core.mandate import Trust
from upright.core.trigger import Disposition
from upright.core.work import WorkItem
from upright.store import intake, outbox, work
from upright.store.tables import DELIVERY, SESSION, TRIGGER
from upright.store.unit import Unit


async def followers(hub: StillHub) -> tuple[WorkItem, WorkItem]:
    """Open two items whose workers rest; both follow the thread of the first."""
    item, other = await hub.opened(), await hub.opened(trigger(thread="pr:8"))
    await hub.do(lambda u: work.subscribe(u, other.session, item.thread))
    for one in (item, other):
        await hub.asleep(one)
    return item, other


async def says(hub: StillHub, item: WorkItem, receipt: str = "c-1") -> None:
    """Let a worker's reply become visible."""

    def unit(u: Unit) -> None:
        draft = outbox.Draft(
            session=item.session,
            work=item.id,
            trigger=item.trigger,
            effect_class=EffectClass.REPLY,
            destination=PULL,
            text="Fixed it.",
            idempotency_key=receipt,
        )
        outbox.put(u, draft)
        (stored,) = outbox.claim_due(u, 1).taken
        outbox.delivered(u, stored, Receipt(provider_id=receipt, url="https://x/1"), 0.1)

    await hub.do(unit)


async def heard(hub: StillHub, item: WorkItem) -> list[tuple[str, str, str]]:
    unread = await hub.see(lambda c: intake.unread(c, item.session))
    return [
        (one.trigger.kind, one.trigger.actor.kind.value, one.trigger.content.text) for one in unread
    ]


def echo(native: str) -> Trigger:
    return trigger("comment.created", by=ANN, facts=(("native_id", native),))


@pytest.mark.clause("B6.7")
async def test_a_reply_is_context_for_the_other_follower_and_wakes_nobody(hub: StillHub) -> None:
    item, other = await followers(hub)
    await says(hub, item)
    assert await heard(hub, other) == [("reply.sent", "self", "Fixed it.")]
    assert await heard(hub, item) == []
    for one in (item, other):
        assert (await hub.row(SESSION, id=one.session))["ready_at_ms"] is None
    row = await hub.row(TRIGGER, kind="reply.sent")
    assert (row["disposition"], row["thread_id"]) == ("joined", item.thread)


@pytest.mark.clause("B6.7", "B1.5")
@pytest.mark.parametrize("native", ["c-1", "c-2"])
async def test_the_providers_echo_is_what_was_told_at_the_receipt(
    hub: StillHub, native: str
) -> None:
    item, other = await followers(hub)
    await says(hub, item, "c-1,c-2")
    await hub.reopen()
    came = await hub.one(echo(native))
    told = await hub.row(TRIGGER, kind="reply.sent")
    assert (came.duplicate, came.id, came.woke) == (True, told["id"], ())
    assert len(await heard(hub, other)) == 1


@pytest.mark.clause("B6.7", "B1.5")
async def test_an_echo_that_is_faster_than_the_receipt_is_the_only_one(hub: StillHub) -> None:
    item, other = await followers(hub)
    first = await hub.one(trigger("comment.created", by=US, facts=(("native_id", "c-1"),)))
    await says(hub, item)
    assert first.woke == ()
    assert [kind for kind, *_ in await heard(hub, other)] == ["comment.created"]
    assert await hub.rows(TRIGGER, kind="reply.sent") == []


@pytest.mark.clause("B6.7", "B14.2")
async def test_a_reply_is_trusted_no_more_than_what_its_author_had_read(hub: StillHub) -> None:
    item, _ = await followers(hub)
    read = {"taint": int(Trust.STRANGER)}
    await hub.do(
        lambda u: u.c.execute(SESSION.update().where(SESSION.c.id == item.session).values(read))
    )
    await says(hub, item)
    assert (await hub.row(TRIGGER, kind="reply.sent"))["trust"] == "stranger"


@pytest.mark.clause("B1.5")
async def test_where_nobody_else_follows_a_reply_is_kept_and_given_to_nobody(
    hub: StillHub,
) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await says(hub, item)
    told = await hub.row(TRIGGER, kind="reply.sent")
    assert told["disposition"] == Disposition.IGNORED.value
    assert await hub.rows(DELIVERY, trigger_id=told["id"]) == []


@pytest.mark.clause("B1.4")
async def test_an_edit_of_what_we_wrote_finds_it(hub: StillHub) -> None:
    item, _ = await followers(hub)
    await says(hub, item)
    told = await hub.row(TRIGGER, kind="reply.sent")
    native = (("native_id", "c-1"),)
    came = await hub.one(trigger("comment.edited", by=ANN, facts=native, edit_of="c-1"))
    assert (await hub.row(TRIGGER, id=came.id))["edits_id"] == told["id"]
    assert came.woke == ()
