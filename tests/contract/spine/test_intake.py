"""Intake on a real database: a trigger is stored once, whole, and own output is known (B1, B2)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.still_hub import ANN, SOURCE, US, StillHub, trigger
from upright.api import EffectClass, Receipt
from upright.core.gate import Rule, Verdict
from upright.core.trigger import Disposition
from upright.core.work import WorkItem
from upright.store import intake, outbox, sources
from upright.store.tables import CURSOR, DEDUPE, DELIVERY, OUTBOX, PAYLOAD, TRIGGER
from upright.store.unit import Unit

RED = trigger(native="red-1", joins=("sha:c0ffee0", "branch:fix"))


# ------------------------------------------------------------------ once
@pytest.mark.clause("B1.2", "B2.1")
async def test_a_trigger_is_stored_whole_and_its_raw_bytes_can_be_found(hub: StillHub) -> None:
    accepted = await hub.one(RED)
    row = await hub.row(TRIGGER, id=accepted.id)
    payload = await hub.row(PAYLOAD, id=row["payload_id"])
    stored = await hub.see(lambda c: intake.read(c, accepted.id))
    assert bytes.fromhex(payload["body"]) == RED.raw
    assert stored is not None
    assert stored.trigger.content == RED.content
    assert stored.trigger.context == RED.context


@pytest.mark.clause("B2.2")
@pytest.mark.parametrize("key", ["native", "semantic"])
async def test_any_known_key_refuses_a_trigger_and_names_the_first(hub: StillHub, key: str) -> None:
    first = await hub.one(replace(RED, dedupe=("native", "semantic")))
    again = await hub.one(replace(RED, dedupe=("another", key)))
    assert (again.id, again.duplicate, again.woke) == (first.id, True, ())
    assert len(await hub.rows(TRIGGER)) == 1
    assert await hub.rows(DEDUPE, key="another") == []


@pytest.mark.clause("B2.2")
@pytest.mark.case("OC/31541")
@pytest.mark.feature("common.dedupe")
async def test_a_redelivery_a_week_later_and_after_a_restart_is_refused(hub: StillHub) -> None:
    first = await hub.one(RED)
    await hub.reopen()
    hub.clock.go_on(7 * 24 * 3600)
    again = await hub.one(RED)
    assert (again.id, again.duplicate, again.disposition) == (first.id, True, first.disposition)


@pytest.mark.clause("B2.2")
async def test_the_same_trigger_twice_in_one_batch_is_stored_once(hub: StillHub) -> None:
    first, second = await hub.accept(RED, RED)
    assert (first.duplicate, second.duplicate, second.id) == (False, True, first.id)


async def test_the_same_key_of_another_source_is_another_trigger(hub: StillHub) -> None:
    await hub.one(RED)

    def unit(u: Unit) -> list[intake.Accepted]:
        return intake.accept(u, "other", [RED], hub.policy)

    (accepted,) = await hub.do(unit)
    assert not accepted.duplicate


@pytest.mark.clause("B1.6")
@pytest.mark.feature("common.cursor")
async def test_a_cursor_moves_with_what_it_covers_and_not_without(hub: StillHub) -> None:
    await hub.accept(trigger(), cursor="17")
    broken = trigger(text="\ud800")  # no text at all: the whole batch is refused
    with pytest.raises(ValueError, match="surrogates"):
        await hub.accept(trigger(), broken, cursor="18")
    assert await hub.see(lambda c: sources.cursor(c, SOURCE)) == "17"
    assert len(await hub.rows(TRIGGER)) == 1
    await hub.accept(cursor="19")
    assert [row["value"] for row in await hub.rows(CURSOR)] == ["19"]


# ------------------------------------------------------------------ own output
@pytest.mark.clause("B1.5")
@pytest.mark.parametrize("receipt", ["c-99", "c-98,c-99", "c-99,c-100"])
@pytest.mark.feature("common.loops")
async def test_own_output_is_known_by_its_receipt_whoever_it_seems_to_be_by(
    hub: StillHub, receipt: str
) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await sent(hub, item, receipt)
    await hub.asleep(item)
    came = await hub.one(trigger("comment.created", by=ANN, facts=(("native_id", "c-99"),)))
    row = await hub.row(TRIGGER, id=came.id)
    assert (row["actor_kind"], came.disposition, came.woke) == ("self", Disposition.IGNORED, ())
    assert came.duplicate  # it is known from its receipt


@pytest.mark.clause("B1.5")
@pytest.mark.parametrize("native", ["c-9", "c-999", "", "c_99"])
async def test_what_only_resembles_a_receipt_is_not_taken_for_our_own(
    hub: StillHub, native: str
) -> None:
    item = await hub.opened()
    await sent(hub, item, "c-99")
    came = await hub.one(trigger("comment.created", by=ANN, facts=(("native_id", native),)))
    assert (await hub.row(TRIGGER, id=came.id))["actor_kind"] == "member"


@pytest.mark.clause("B1.5")
async def test_own_output_on_a_thread_that_nobody_follows_starts_nothing(hub: StillHub) -> None:
    came = await hub.one(trigger("ci.failed", by=US))
    assert (came.disposition, came.woke) == (Disposition.IGNORED, ())
    assert await hub.rows(DELIVERY) == []


async def sent(hub: StillHub, item: WorkItem, receipt: str) -> None:
    """Send a reply of an item, with this receipt."""

    def unit(u: Unit) -> None:
        assert item.destination is not None
        draft = outbox.Draft(
            session=item.session,
            work=item.id,
            trigger=item.trigger,
            effect_class=EffectClass.REPLY,
            destination=item.destination,
            text="Fixed.",
            idempotency_key=receipt,
        )
        outbox.put(u, draft)
        (stored,) = outbox.claim_due(u, 1).taken
        outbox.delivered(u, stored, Receipt(provider_id=receipt), 0.1)

    await hub.do(unit)
    assert [row["receipt_id"] for row in await hub.rows(OUTBOX)] == [receipt]


# ------------------------------------------------------------------ urgent by configuration
@pytest.mark.clause("B2.5")
@pytest.mark.parametrize("urgent", [True, False])
async def test_what_a_rule_calls_urgent_is_stored_as_urgent(hub: StillHub, *, urgent: bool) -> None:
    rule = Rule(name="red", verdict=Verdict.EXPLICIT, kinds=("ci.failed",), urgent=urgent)
    hub.policy = replace(hub.policy, rules=replace(hub.policy.rules, rules=(rule,)))
    hinted = replace(RED, content=replace(RED.content, urgent=True))
    accepted = await hub.one(hinted)
    assert (await hub.row(TRIGGER, id=accepted.id))["urgent"] is urgent
