"""What a cancelled item wanted to say: it stays here, unless it is on its way (B11, B15)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.agents import Agents, Say, ScriptedChat, call
from fixtures.still_hub import ANN, PULL, StillHub, trigger
from upright.api import Destination, EffectClass, Receipt
from upright.core import work as machine
from upright.core.mandate import Trust
from upright.core.outbox import NotDelivered, OutboxState
from upright.core.work import WorkItem, WorkState
from upright.store import outbox, oversight, relations, work
from upright.store.outbox import Draft, Setback, Stored
from upright.store.relations import Spawning
from upright.store.tables import OUTBOX
from upright.store.unit import Unit


def place(n: int) -> Destination:
    """Return one destination of several."""
    return replace(PULL, address=(("number", str(n)),))


async def wants(hub: StillHub, item: WorkItem, n: int = 7, state: str = "pending") -> Stored:
    """Let an item want to send something to the n-th place."""
    draft = Draft(
        session=item.session,
        work=item.id,
        trigger=item.trigger,
        effect_class=EffectClass.REPLY,
        destination=place(n),
        text=f"Fixed {n}.",
        idempotency_key=f"{item.id} {n}",
        state=OutboxState(state),
    )
    return await hub.do(lambda u: outbox.put(u, draft))


async def states(hub: StillHub) -> dict[str, str]:
    return {row["text"]: row["state"] for row in await hub.rows(OUTBOX)}


async def claim(hub: StillHub) -> list[Stored]:
    return list((await hub.do(lambda u: outbox.claim_due(u, 8))).taken)


@pytest.mark.clause("B11.6", "B15.2")
async def test_what_nobody_has_begun_to_send_stays_here_and_says_why(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await wants(hub, item, 1)
    (sending,) = await claim(hub)
    await wants(hub, item, 2)
    await wants(hub, item, 3, "held")
    await hub.do(lambda u: oversight.cancel(u, item.id, "ann"))
    assert await states(hub) == {"Fixed 1.": "sending", "Fixed 2.": "dead", "Fixed 3.": "dead"}
    assert "cancelled by ann" in (await hub.row(OUTBOX, text="Fixed 2."))["reason"]
    assert await claim(hub) == []
    await hub.do(lambda u: outbox.delivered(u, sending, Receipt(provider_id="c-1"), 0.1))
    assert (await states(hub))["Fixed 1."] == "sent"


@pytest.mark.clause("B15.2")
async def test_a_try_that_fails_after_the_cancel_is_the_last(hub: StillHub) -> None:
    item = await hub.opened()
    await wants(hub, item)
    (sending,) = await claim(hub)
    await hub.do(lambda u: oversight.cancel(u, item.id, "ann"))
    busy = Setback(event=NotDelivered(), reason="busy", wait_s=1.0)
    assert await hub.do(lambda u: outbox.set_back(u, sending, busy)) is OutboxState.DEAD
    assert "busy" in (await hub.row(OUTBOX))["reason"]


@pytest.mark.clause("B15.2")
async def test_what_a_dead_sender_of_a_cancelled_item_had_begun_is_unknown(hub: StillHub) -> None:
    item = await hub.opened()
    await wants(hub, item)
    await claim(hub)
    await hub.do(lambda u: oversight.cancel(u, item.id, "ann"))
    await hub.do(outbox.abandon_all)
    assert (await states(hub)) == {"Fixed 7.": "unknown"}
    assert await claim(hub) == []


@pytest.mark.clause("B11.6")
async def test_what_may_be_visible_of_a_cancelled_item_is_shown_as_unknown(hub: StillHub) -> None:
    item = await hub.opened()
    await wants(hub, item)
    await claim(hub)
    await hub.do(outbox.abandon_all)
    await hub.do(lambda u: oversight.cancel(u, item.id, "ann"))
    assert (await states(hub)) == {"Fixed 7.": "unknown"}


@pytest.mark.clause("B11.12", "B15.2")
async def test_what_a_child_wanted_to_send_stays_here_too(hub: StillHub) -> None:
    item = await hub.opened()
    asked = Spawning(goal="a part", criteria=("x",), taint=work_trust(item))
    child = await hub.do(lambda u: relations.spawn(u, work.read(u.c, item.id), asked))
    await wants(hub, child)
    await hub.do(lambda u: oversight.cancel(u, item.id, "ann"))
    assert (await states(hub)) == {"Fixed 7.": "dead"}


def work_trust(item: WorkItem) -> Trust:
    return item.mandate.trust


async def test_what_a_completed_item_said_goes_out_all_the_same(hub: StillHub) -> None:
    item = await hub.opened(criteria=())
    await wants(hub, item)

    def done(u: Unit) -> None:
        moved = work.move(u, work.read(u.c, item.id), machine.EvidenceGiven())
        work.move(u, moved, machine.Accepted())

    await hub.do(done)
    assert [one.text for one in await claim(hub)] == ["Fixed 7."]


@pytest.mark.clause("B5.1", "B11.12")
async def test_the_router_cancels_an_item_with_its_children_and_their_words(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    asked = Spawning(goal="a part", criteria=("x",), taint=work_trust(item))
    child = await hub.do(lambda u: relations.spawn(u, work.read(u.c, item.id), asked))
    await wants(hub, child)
    await hub.asleep(child)
    cancel = call("cancel", {"work": item.id, "reason": "it is fixed upstream"})
    agents = Agents(hub, ScriptedChat(router=(cancel, Say("Done.")), worker=(Say("Hm."),)))
    await hub.one(trigger("ci.failed", by=ANN, thread="pr:9"))
    await agents.go()
    assert (await hub.item(child)).state is WorkState.CANCELLED
    assert (await states(hub)) == {"Fixed 7.": "dead"}
