"""Outbox on a real database: an effect is a row, claimed, tried, and settled once (B15)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.still_hub import PULL, START_MS, StillHub
from upright.api import EffectClass, Receipt
from upright.core.backoff import Backoff
from upright.core.errors import IllegalMoveError
from upright.core.outbox import NotDelivered, OutboxState, Refused, Uncertain
from upright.core.work import WorkItem
from upright.engine.embedded import recover
from upright.store import intake, outbox
from upright.store.errors import UnknownIdError
from upright.store.outbox import Draft, Setback, Stored
from upright.store.tables import EVENT, LEDGER, OUTBOX, SESSION
from upright.store.unit import Unit

BACKOFF = Backoff(base_s=1.0, cap_s=10.0, max_tries=3)
NOT_NOW = Setback(event=NotDelivered(), reason="busy", wait_s=5.0, backoff=BACKOFF)


def draft(item: WorkItem, key: str = "k") -> Draft:
    return Draft(
        session=item.session,
        work=item.id,
        trigger=item.trigger,
        effect_class=EffectClass.REPLY,
        destination=PULL,
        text=f"Fixed {key}.",
        idempotency_key=key,
    )


async def put(hub: StillHub, given: Draft) -> Stored:
    return await hub.do(lambda u: outbox.put(u, given))


async def claim(hub: StillHub, limit: int = 8) -> list[Stored]:
    return await hub.do(lambda u: outbox.claim_due(u, limit))


async def set_back(hub: StillHub, stored: Stored, setback: Setback) -> OutboxState:
    return await hub.do(lambda u: outbox.set_back(u, stored, setback))


async def told(hub: StillHub, session: str) -> list[str]:
    unread = await hub.see(lambda c: intake.unread(c, session))
    return [one.trigger.kind for one in unread]


@pytest.mark.clause("B15.1")
async def test_the_same_key_gives_the_first_effect_back_also_after_a_restart(
    hub: StillHub,
) -> None:
    item = await hub.opened()
    first = await put(hub, draft(item))
    await hub.reopen()
    again = await put(hub, replace(draft(item), text="something else"))
    assert again == first
    assert len(await hub.rows(OUTBOX)) == len(await hub.rows(EVENT, stop="effect.committed")) == 1


@pytest.mark.clause("B15.1")
async def test_an_effect_keeps_the_destination_it_was_made_with(hub: StillHub) -> None:
    item = await hub.opened()
    stored = await put(hub, draft(item))
    assert stored.destination == PULL
    assert stored.digest == outbox.digest(PULL, "Fixed k.")
    other = replace(PULL, address=(("number", "8"),))
    assert outbox.digest(other, "Fixed k.") != stored.digest


@pytest.mark.clause("B15.2")
async def test_what_is_claimed_is_claimed_by_nobody_else(hub: StillHub) -> None:
    item = await hub.opened()
    for key in ("a", "b", "c"):
        await put(hub, draft(item, key))
    two = await claim(hub, 2)
    rest = await claim(hub)
    assert [one.idempotency_key for one in (*two, *rest)] == ["a", "b", "c"]
    assert {one.item.tries for one in (*two, *rest)} == {1}
    assert await claim(hub) == []


@pytest.mark.clause("B15.2", "B16.1")
async def test_a_receipt_settles_an_effect_and_the_worker_is_not_told(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await put(hub, draft(item))
    (stored,) = await claim(hub)
    receipt = Receipt(provider_id="c-1", url="https://x/1")
    await hub.do(lambda u: outbox.delivered(u, stored, receipt, 0.5))
    row = await hub.row(OUTBOX)
    assert (row["state"], row["receipt_id"], row["receipt_url"]) == ("sent", "c-1", "https://x/1")
    assert row["settled_at_ms"] == START_MS
    assert await told(hub, item.session) == []
    assert [row["kind"] for row in await hub.rows(LEDGER)] == ["effect"]


@pytest.mark.clause("B15.3")
async def test_a_try_that_did_not_deliver_is_due_again_after_its_pause(hub: StillHub) -> None:
    await put(hub, draft(await hub.opened()))
    (stored,) = await claim(hub)
    assert await set_back(hub, stored, NOT_NOW) is OutboxState.PENDING
    assert await hub.see(outbox.next_due_ms) == START_MS + 5_000
    hub.clock.go_on(4.999)
    assert await claim(hub) == []
    hub.clock.go_on(0.001)
    (again,) = await claim(hub)
    assert again.item.tries == 2


@pytest.mark.clause("B15.3")
async def test_after_its_last_try_an_effect_is_dead_and_its_worker_is_told(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await put(hub, draft(item))
    states = []
    for _ in range(BACKOFF.max_tries):
        (stored,) = await claim(hub)
        states.append(await set_back(hub, stored, NOT_NOW))
        hub.clock.go_on(5)
    assert states == [OutboxState.PENDING, OutboxState.PENDING, OutboxState.DEAD]
    assert (await hub.row(OUTBOX))["reason"] == "given up after 3 tries: busy"
    assert await told(hub, item.session) == ["effect.dead"]


@pytest.mark.clause("B15.2", "B15.3")
@pytest.mark.parametrize(
    ("setback", "state"),
    [
        (Setback(event=Refused(), reason="gone"), "dead"),
        (Setback(event=Uncertain(), reason="cut off"), "unknown"),
    ],
)
async def test_what_is_refused_or_uncertain_is_final_at_once_and_told(
    hub: StillHub, setback: Setback, state: str
) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await put(hub, draft(item))
    (stored,) = await claim(hub)
    await set_back(hub, stored, setback)
    assert await told(hub, item.session) == [f"effect.{state}"]
    hub.clock.go_on(3600)
    assert await claim(hub) == []
    with pytest.raises(IllegalMoveError):
        await hub.do(lambda u: outbox.release(u, stored.id))


@pytest.mark.clause("B15.2")
async def test_the_router_is_told_too_when_its_answer_is_lost(hub: StillHub) -> None:
    router = await hub.router()
    item = await hub.opened()
    await put(hub, replace(draft(item), session=router, work=None))
    (stored,) = await claim(hub)
    await set_back(hub, stored, Setback(event=Refused(), reason="gone"))
    assert await told(hub, router) == ["effect.dead"]


async def test_a_session_that_has_ended_is_told_nothing(hub: StillHub) -> None:
    router = await hub.router()
    item = await hub.opened()
    await put(hub, replace(draft(item), session=router, work=None))
    (stored,) = await claim(hub)
    ended = SESSION.update().where(SESSION.c.id == router).values(ended_at_ms=1)
    await hub.do(lambda u: u.c.execute(ended).rowcount)
    await set_back(hub, stored, Setback(event=Refused(), reason="gone"))
    assert await told(hub, router) == []


@pytest.mark.clause("B15.3")
async def test_what_is_too_old_expires_instead_of_going_out(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await put(hub, replace(draft(item, "old"), life_ms=60_000))
    hub.clock.go_on(60)
    await put(hub, replace(draft(item, "new"), life_ms=60_000))
    assert [one.idempotency_key for one in await claim(hub)] == ["new"]
    assert [row["state"] for row in await hub.rows(OUTBOX)] == ["expired", "sending"]
    assert await told(hub, item.session) == ["effect.expired"]


@pytest.mark.clause("B15.2")
async def test_what_a_dead_sender_had_claimed_is_tried_again_as_a_second_try(
    hub: StillHub,
) -> None:
    await put(hub, draft(await hub.opened()))
    await claim(hub)
    await hub.reopen()
    assert (await hub.do(recover))["sends"] == 1
    (again,) = await claim(hub)
    assert again.item.tries == 2  # thus Effect.tries is 1: look before you send


@pytest.mark.clause("B15.3")
async def test_what_takes_its_sender_down_each_time_is_unknown_in_the_end(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await put(hub, draft(item))
    for _ in range(8):
        assert len(await claim(hub)) == 1
        await hub.do(recover)
    assert await claim(hub) == []
    assert await told(hub, item.session) == ["effect.unknown"]


@pytest.mark.clause("B15.3")
async def test_what_was_never_tried_waits_for_its_channel_as_long_as_it_lives(
    hub: StillHub,
) -> None:
    await put(hub, replace(draft(await hub.opened()), life_ms=3_600_000))
    waits = replace(NOT_NOW, backoff=None)
    for _ in range(20):
        (stored,) = await claim(hub)
        assert await set_back(hub, stored, waits) is OutboxState.PENDING
        hub.clock.go_on(5)
    hub.clock.go_on(3600)
    assert await claim(hub) == []
    assert (await hub.row(OUTBOX))["state"] == "expired"


@pytest.mark.clause("B14.3")
async def test_a_held_effect_is_not_claimed_until_it_is_released(hub: StillHub) -> None:
    item = await hub.opened()
    held = await put(hub, replace(draft(item), state=OutboxState.HELD))
    assert await claim(hub) == []
    await hub.do(lambda u: outbox.release(u, held.id))
    assert [one.id for one in await claim(hub)] == [held.id]


async def test_a_draft_in_a_unit_that_fails_leaves_nothing(hub: StillHub) -> None:
    item = await hub.opened()

    def unit(u: Unit) -> None:
        outbox.put(u, draft(item))
        outbox.read(u.c, "ob_nobody")

    with pytest.raises(UnknownIdError):
        await hub.do(unit)
    assert await hub.rows(OUTBOX) == []
