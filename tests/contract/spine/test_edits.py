"""Edits and deletions on a real database: they change a trigger and ask nothing anew (B1.4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.still_hub import ANN, CI, EVE, SOURCE, StillHub, trigger
from upright.api import Address, Trigger
from upright.core.trigger import Disposition
from upright.store import intake, views
from upright.store.arrivals import Arrival
from upright.store.tables import DEDUPE, DELIVERY, SESSION, TRIGGER, WORK
from upright.store.unit import Unit

NATIVE = (("native_id", "501"),)


def edited(*, thread: str = "pr:7", address: Address = Address.NONE) -> Trigger:
    """Make an edit of the comment 501."""
    return trigger(
        "comment.edited", by=ANN, facts=NATIVE, edit_of="501", thread=thread, address=address
    )


@pytest.mark.clause("B1.4")
async def test_an_edit_is_stored_beside_what_it_changes_and_told_as_such(hub: StillHub) -> None:
    item = await hub.opened(trigger(facts=NATIVE))
    await hub.asleep(item)
    came = await hub.one(edited())
    row = await hub.row(TRIGGER, id=came.id)
    assert (came.disposition, row["edits_id"]) == (Disposition.WOKE, item.trigger)
    (unread,) = await hub.see(lambda c: intake.unread(c, item.session))
    assert (unread.id, unread.edits) == (came.id, item.trigger)
    assert (await hub.see(lambda c: views.trigger(c, item.trigger)))["edited_by"] == [came.id]


@pytest.mark.clause("B1.4")
async def test_an_edit_joins_the_thread_of_what_it_changes_whatever_thread_it_names(
    hub: StillHub,
) -> None:
    first = await hub.one(trigger("comment.created", by=ANN, facts=NATIVE))
    again = await hub.one(edited(thread="elsewhere"))
    rows = {row["id"]: row["thread_id"] for row in await hub.rows(TRIGGER)}
    assert rows[first.id] == rows[again.id]


@pytest.mark.clause("B1.4")
async def test_what_is_changed_is_found_by_a_dedupe_key_too(hub: StillHub) -> None:
    first = await hub.one(trigger("note", native="501"))
    again = await hub.one(edited())
    assert (await hub.row(TRIGGER, id=again.id))["edits_id"] == first.id


@pytest.mark.clause("B1.4")
async def test_the_same_id_of_another_source_is_not_what_is_changed(hub: StillHub) -> None:
    other = trigger("note", facts=NATIVE)
    await hub.do(lambda u: intake.accept(u, "other", [other], hub.policy))
    again = await hub.one(edited())
    assert (await hub.row(TRIGGER, id=again.id))["edits_id"] is None


@pytest.mark.clause("B1.4")
@pytest.mark.parametrize("kind", ["comment.edited", "comment.deleted"])
async def test_an_edit_with_a_mention_opens_no_work_on_a_thread_that_nobody_follows(
    hub: StillHub, kind: str
) -> None:
    """A member adds a mention to an old comment: a person decides, not the router."""
    await hub.one(trigger("ci.started", by=CI, facts=NATIVE))  # ignored
    came = await hub.one(replace(edited(address=Address.MENTION), kind=kind))
    assert (came.disposition, came.woke) == (Disposition.HELD, ())
    assert (await hub.rows(WORK), await hub.rows(SESSION), await hub.rows(DELIVERY)) == ([], [], [])


@pytest.mark.clause("B1.4")
async def test_an_edit_reaches_the_router_that_has_what_it_changes_without_a_wake(
    hub: StillHub,
) -> None:
    asked = await hub.one(trigger("comment.created", by=ANN, address=Address.MENTION, facts=NATIVE))
    assert asked.disposition is Disposition.STARTED
    came = await hub.one(edited(address=Address.MENTION))
    assert (came.disposition, came.woke) == (Disposition.JOINED, ())
    unread = await hub.see(lambda c: intake.unread(c, asked.woke[0]))
    assert [one.id for one in unread] == [asked.id, came.id]


@pytest.mark.clause("B1.4")
async def test_an_edit_in_the_same_batch_finds_what_it_changes(hub: StillHub) -> None:
    asked = trigger("comment.created", by=ANN, address=Address.MENTION, facts=NATIVE)
    first, again = await hub.accept(asked, edited())
    assert (await hub.row(TRIGGER, id=again.id))["edits_id"] == first.id
    unread = await hub.see(lambda c: intake.unread(c, first.woke[0]))
    assert [one.id for one in unread] == [first.id, again.id]


@pytest.mark.clause("B1.4", "B2.5")
async def test_an_edit_that_mentions_us_is_folded_as_no_request_is(hub: StillHub) -> None:
    item = await hub.opened(trigger(facts=NATIVE))
    await hub.asleep(item)
    await hub.one(trigger("note", by=EVE))
    assert (await hub.one(edited(address=Address.MENTION))).folded == (item.session,)


# ------------------------------------------------------------------ batches
@pytest.mark.clause("B2.1")
@pytest.mark.case("HO/2486")
async def test_one_bad_request_harms_none_that_came_with_it(hub: StillHub) -> None:
    good = [trigger(thread="pr:1"), trigger(thread="pr:2")]
    bad = trigger(text="\ud800")  # no text at all
    batch = [Arrival(source=SOURCE, triggers=[one]) for one in (good[0], bad, good[1])]
    first, lost, last = await hub.do(lambda u: intake.accept_each(u, batch, hub.policy))
    assert isinstance(lost, ValueError)
    assert isinstance(first, list)
    assert isinstance(last, list)
    assert {row["id"] for row in await hub.rows(TRIGGER)} == {first[0].id, last[0].id}


@pytest.mark.clause("B2.1", "B2.2")
async def test_a_batch_does_what_its_requests_do_one_after_the_other(hub: StillHub) -> None:
    item = await hub.opened(trigger())
    await hub.asleep(item)
    news = [trigger("note", thread="pr:7", native=f"k{n % 4}") for n in range(6)]
    others = [trigger("note", thread="pr:8", joins=("sha:1",)), trigger("n", thread="sha:1")]

    def unit(u: Unit) -> list[list[intake.Accepted] | Exception]:
        batch = [Arrival(source=SOURCE, triggers=[one]) for one in (*news, *others)]
        batch[2] = replace(batch[2], cursor="3")
        return intake.accept_each(u, batch, hub.policy)

    found = [each[0] for each in await hub.do(unit) if isinstance(each, list)]
    assert [one.duplicate for one in found] == [False] * 4 + [True] * 2 + [False] * 2
    assert [one.id for one in found[4:6]] == [one.id for one in found[:2]]
    assert [one.id for one in await hub.see(lambda c: intake.unread(c, item.session))] == [
        one.id for one in found[:4]
    ]
    assert len({row["thread_id"] for row in await hub.rows(TRIGGER) if row["kind"] != "note"}) == 2
    by_id = {row["id"]: row["thread_id"] for row in await hub.rows(TRIGGER)}
    assert by_id[found[6].id] == by_id[found[7].id]  # the first taught the second its key
    assert len(await hub.rows(DEDUPE)) == 7
