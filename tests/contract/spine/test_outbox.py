"""Outbox on a real database: an effect is a row, claimed, tried, and settled once (B15)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.still_hub import PULL, START_MS, StillHub
from upright.api import Destination, EffectClass, Receipt
from upright.core.backoff import Backoff
from upright.core.errors import IllegalMoveError
from upright.core.outbox import NotDelivered, OutboxState, Refused, Uncertain
from upright.core.terms import DEFAULT_TERMS
from upright.core.work import WorkItem
from upright.engine.embedded import recover
from upright.store import intake, outbox
from upright.store.errors import NotNowError, UnknownIdError
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


def place(n: int) -> Destination:
    """Return one destination of several."""
    return replace(PULL, address=(("number", str(n)),))


async def put(hub: StillHub, given: Draft) -> Stored:
    return await hub.do(lambda u: outbox.put(u, given))


async def claim(hub: StillHub, limit: int = 8) -> list[Stored]:
    return list((await hub.do(lambda u: outbox.claim_due(u, limit))).taken)


async def set_back(hub: StillHub, stored: Stored, setback: Setback) -> OutboxState:
    return await hub.do(lambda u: outbox.set_back(u, stored, setback))


async def sent(hub: StillHub, stored: Stored) -> None:
    """Let a provider confirm an effect."""
    receipt = Receipt(provider_id=f"c-{stored.idempotency_key}")
    await hub.do(lambda u: outbox.delivered(u, stored, receipt, 0.1))


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
@pytest.mark.case("OC/92171")
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
    for n, key in enumerate(("a", "b", "c")):
        await put(hub, replace(draft(item, key), destination=place(n)))
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
    assert await hub.see(lambda c: outbox.next_due_ms(c, START_MS)) == START_MS + 5_000
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
@pytest.mark.case("AI/161")
@pytest.mark.feature("common.outbox")
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


# ------------------------------------------------------------------ lanes
@pytest.mark.clause("B15.2")
async def test_a_destination_gets_one_effect_at_a_time_the_oldest_first(hub: StillHub) -> None:
    item = await hub.opened()
    for key in ("a", "b"):
        await put(hub, draft(item, key))
    (first,) = await claim(hub)
    assert (first.idempotency_key, await claim(hub)) == ("a", [])
    await hub.do(lambda u: outbox.delivered(u, first, Receipt(provider_id="c-1"), 0.1))
    assert [one.idempotency_key for one in await claim(hub)] == ["b"]


@pytest.mark.clause("B15.2", "B15.3")
@pytest.mark.parametrize(("wait_s", "next_one"), [(60.0, None), (61.0, "b")])
async def test_what_is_tried_again_soon_keeps_its_place_and_later_lets_others_pass(
    hub: StillHub, wait_s: float, next_one: str | None
) -> None:
    item = await hub.opened()
    for key in ("a", "b"):
        await put(hub, draft(item, key))
    (first,) = await claim(hub)
    await set_back(hub, first, replace(NOT_NOW, wait_s=wait_s))
    taken = await claim(hub)
    assert [one.idempotency_key for one in taken] == ([next_one] if next_one else [])
    hub.clock.go_on(wait_s)
    late = await claim(hub)  # a second one is never on its way beside the first
    assert [one.idempotency_key for one in late] == ([] if next_one else ["a"])


@pytest.mark.clause("B15.3")
async def test_what_a_person_has_to_approve_holds_up_nobody(hub: StillHub) -> None:
    item = await hub.opened()
    held = await put(hub, replace(draft(item, "a"), state=OutboxState.HELD))
    await put(hub, draft(item, "b"))
    (second,) = await claim(hub)
    assert second.idempotency_key == "b"
    hub.clock.go_on(30 * 24 * 3600)
    await hub.do(lambda u: outbox.release(u, held.id))
    life_ms = DEFAULT_TERMS.life_ms(EffectClass.REPLY)
    released = (await hub.rows(OUTBOX))[0]
    assert released["expires_at_ms"] == released["due_at_ms"] + life_ms


@pytest.mark.clause("B15.3")
@pytest.mark.case("OC/39138")
async def test_after_a_long_outage_only_what_is_worth_it_goes_out(hub: StillHub) -> None:
    """OC/39138: after an outage of 16 hours a hundred old messages went out at once."""
    item = await hub.opened()
    await hub.asleep(item)
    for n in range(100):
        life_s = 24 * 3600 if n % 10 == 0 else 3600
        await put(hub, replace(draft(item, f"k{n}"), life_ms=1000 * life_s))
    hub.clock.go_on(16 * 3600)
    went = []
    while taken := await claim(hub, 100):
        for one in taken:
            went.append(one.idempotency_key)
            await sent(hub, one)
    assert went == [f"k{n}" for n in range(0, 100, 10)]
    assert len(await hub.rows(OUTBOX, state="expired")) == 90
    assert len(await told(hub, item.session)) == 90
    assert len(await hub.rows(SESSION, ready_at_ms=None)) == len(await hub.rows(SESSION)) - 1


async def test_a_sender_looks_again_when_the_next_one_is_due_or_too_late(hub: StillHub) -> None:
    await put(hub, replace(draft(await hub.opened()), life_ms=3000))
    assert await hub.see(lambda c: outbox.next_due_ms(c, START_MS)) == START_MS + 3000
    (stored,) = await claim(hub)
    assert await hub.see(lambda c: outbox.next_due_ms(c, START_MS)) is None
    await set_back(hub, stored, replace(NOT_NOW, wait_s=2.0))
    assert await hub.see(lambda c: outbox.next_due_ms(c, START_MS)) == START_MS + 2000


# ------------------------------------------------------------------ dead letters
async def dead(hub: StillHub, setback: Setback) -> Stored:
    """Let an effect end without a receipt, and its worker know."""
    item = await hub.opened()
    await hub.asleep(item)
    await put(hub, draft(item))
    (stored,) = await claim(hub)
    await set_back(hub, stored, setback)
    return await hub.see(lambda c: outbox.read(c, stored.id))


@pytest.mark.clause("B15.2", "B15.3")
@pytest.mark.case("OC/79376")
async def test_a_person_sends_a_dead_letter_again_and_its_worker_hears_the_truth(
    hub: StillHub,
) -> None:
    """OC/79376: the caller was told "failed", and the queue sent it anyway."""
    stored = await dead(hub, Setback(event=Refused(), reason="gone"))
    assert await told(hub, stored.session) == ["effect.dead"]
    again = await hub.do(lambda u: outbox.retry(u, stored.id, by="ann", yes=False))
    assert (again.item.state, again.item.tries) == ("pending", 0)
    (taken,) = await claim(hub)
    await hub.do(lambda u: outbox.delivered(u, taken, Receipt(provider_id="c-1"), 0.1))
    assert await told(hub, stored.session) == ["effect.dead", "effect.sent"]
    assert (await hub.row(OUTBOX))["state"] == "sent"
    with pytest.raises(IllegalMoveError):
        await hub.do(lambda u: outbox.retry(u, stored.id, by="ann", yes=True))


@pytest.mark.clause("B15.2")
async def test_what_may_be_visible_is_sent_again_only_when_a_person_says_yes(
    hub: StillHub,
) -> None:
    stored = await dead(hub, Setback(event=Uncertain(), reason="cut off"))
    with pytest.raises(NotNowError, match="may be visible"):
        await hub.do(lambda u: outbox.retry(u, stored.id, by="ann", yes=False))
    assert await claim(hub) == []
    await hub.do(lambda u: outbox.retry(u, stored.id, by="ann", yes=True))
    (taken,) = await claim(hub)
    assert taken.item.tries == 2  # thus Effect.tries is 1: look before you send


async def test_a_second_failure_is_told_like_the_first(hub: StillHub) -> None:
    stored = await dead(hub, Setback(event=Refused(), reason="gone"))
    hub.clock.go_on(1)
    await hub.do(lambda u: outbox.retry(u, stored.id, by="ann", yes=False))
    (taken,) = await claim(hub)
    await set_back(hub, taken, Setback(event=Refused(), reason="gone"))
    assert await told(hub, stored.session) == ["effect.dead", "effect.dead"]
