"""Approvals on a real database: one exact effect, its cause and taint, and who may answer when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from fixtures.held import LIFE_MS, Made, asks, drafted, held, took_all
from fixtures.still_hub import ANN, BOSS, CAL, EVE, PULL, StillHub, decided, trigger
from upright.api import Actor, ActorKind
from upright.core.errors import CoreError, IllegalMoveError
from upright.core.mandate import Trust
from upright.core.outbox import OutboxState
from upright.core.trigger import People
from upright.core.work import WorkItem
from upright.store import (
    approvals,
    approvers,
    deadlines,
    endings,
    intake,
    outbox,
    people,
    persons,
    requests,
    taints,
    views_requests,
)
from upright.store.errors import NotNowError, NotSeenError
from upright.store.plain import Plain
from upright.store.tables import EFFECT_EDIT, EVENT, OUTBOX, REQUEST
from upright.store.unit import Unit


async def shown(hub: StillHub, request: str) -> Plain:
    return await hub.see(lambda c: views_requests.request(c, request))


async def expired(hub: StillHub) -> Made:
    item, request = await held(hub)
    hub.clock.go_on(LIFE_MS / 1000)
    await hub.do(deadlines.fire_due)
    return item, request


# ------------------------------------------------------------------ what is shown
@pytest.mark.clause("B14.3")
async def test_an_approval_shows_the_effect_its_cause_and_what_tainted_it(hub: StillHub) -> None:
    item, request = await held(hub)
    told = await shown(hub, request)
    assert told["effect"]["text"] == "Fixed."
    assert told["effect"]["destination"]["source"] == PULL.source
    assert told["effect"]["digest"] == told["digest"] == outbox.digest(PULL, "Fixed.")
    assert [one["id"] for one in told["cause"]] == [item.trigger]
    (mail,) = told["tainted_by"]
    assert (mail["id"], mail["by"], mail["trust"]) == (item.trigger, "Eve", "stranger")
    assert told["trust"] == "stranger"
    assert told["can"] == ["approve", "edit", "deny"]


@pytest.mark.clause("B14.2", "B14.3")
async def test_what_only_the_router_had_read_is_named_on_the_workers_approval(
    hub: StillHub,
) -> None:
    mail = await hub.one(trigger("comment.created", by=EVE, thread="mail:1"))
    router = await hub.router()

    def read(u: Unit) -> None:
        intake.taken(u.c, router, intake.unread(u.c, router), 1)
        taints.note(u, router, mail.id, Trust.STRANGER)

    await hub.do(read)
    item = await hub.opened(trigger("ci.failed"))
    await hub.do(lambda u: taints.note(u, item.session, router, Trust.STRANGER))
    found = await hub.see(lambda c: taints.what(c, item.session, Trust.STRANGER))
    assert found == (mail.id,)


@pytest.mark.clause("B14.2")
async def test_a_session_that_read_only_operators_is_tainted_by_nothing(hub: StillHub) -> None:
    item = await hub.opened(trigger("comment.created", by=BOSS))
    await hub.do(lambda u: took_all(u, item))
    told = await shown(hub, await hub.do(lambda u: asks(u, item)))
    assert (told["trust"], told["tainted_by"]) == ("operator", [])
    await hub.asleep(item)


@pytest.mark.clause("B14.2")
async def test_two_sessions_that_have_told_each_other_are_named_without_end(hub: StillHub) -> None:
    item = await hub.opened()
    router = await hub.router()

    def both(u: Unit) -> None:
        taints.note(u, item.session, router, Trust.STRANGER)
        taints.note(u, router, item.session, Trust.STRANGER)
        taints.note(u, router, "agenda", Trust.STRANGER)

    await hub.do(both)
    found = await hub.see(lambda c: taints.what(c, item.session, Trust.STRANGER))
    assert found == ("agenda",)


# ------------------------------------------------------------------ who answers, and when
@pytest.mark.clause("B14.3")
@pytest.mark.case("OC/110880")
async def test_of_two_who_answer_at_once_the_first_wins(hub: StillHub) -> None:
    _, request = await held(hub)

    async def decides(by: str, *, approve: bool) -> str | None:
        try:
            await hub.do(lambda u: decided(u, request, by, approve=approve))
        except CoreError:
            return None
        return by

    async with asyncio.TaskGroup() as group:
        said = [
            group.create_task(decides("ann", approve=True)),
            group.create_task(decides("bob", approve=False)),
        ]
    (first,) = [by for one in said if (by := one.result())]
    row = await hub.row(REQUEST)
    assert (row["state"], row["answered_by"]) == ("answered", first)
    effect = await hub.row(OUTBOX)
    assert effect["state"] == ("pending" if first == "ann" else "dead")


@pytest.mark.clause("B14.3")
async def test_a_stale_copy_of_a_request_answers_nothing(hub: StillHub) -> None:
    _, request = await held(hub)
    stale = await hub.see(lambda c: requests.read(c, request))
    await hub.do(lambda u: decided(u, request, "ann", approve=False))
    with pytest.raises(IllegalMoveError):
        await hub.do(lambda u: requests.answer(u, stale, "approved", "bob"))
    assert (await hub.row(REQUEST))["answered_by"] == "ann"


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize("by", [EVE, CAL, ANN, BOSS], ids=lambda who: who.id)
@pytest.mark.parametrize("text", ["yes", "approved", "/approve {}", "I approve {} ✅"])
async def test_text_that_says_approved_is_text_whoever_writes_it(
    hub: StillHub, by: Actor, text: str
) -> None:
    _, request = await held(hub)
    said = trigger("comment.created", by=by, text=text.format(request))
    await hub.one(said)
    assert (await hub.row(REQUEST))["state"] == "asked"
    assert (await hub.row(OUTBOX))["state"] == "held"


# ------------------------------------------------------------------ edit and approve
@pytest.mark.clause("B14.3")
async def test_what_a_person_changed_is_sent_exactly_so_and_the_change_is_kept(
    hub: StillHub,
) -> None:
    _, request = await held(hub)
    was = outbox.digest(PULL, "Fixed.")
    await hub.do(lambda u: people.edit(u, request, "ann", text="Not fixed yet.", digest=was))
    (claimed,) = (await hub.do(lambda u: outbox.claim_due(u, 5))).taken
    now = outbox.digest(PULL, "Not fixed yet.")
    assert (claimed.text, claimed.digest) == ("Not fixed yet.", now)
    told = await shown(hub, request)
    assert (told["digest"], told["answered_by"], told["answer"]) == (now, "ann", "approved")
    (edit,) = told["effect"]["edits"]
    assert (edit["by"], edit["was_text"], edit["was_digest"]) == ("ann", "Fixed.", was)


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize("text", ["", "  \n", "x" * (approvals.MOST_CHARS + 1)])
async def test_an_edit_to_nothing_sends_nothing(hub: StillHub, text: str) -> None:
    _, request = await held(hub)
    was = outbox.digest(PULL, "Fixed.")
    with pytest.raises(NotNowError):
        await hub.do(lambda u: people.edit(u, request, "ann", text=text, digest=was))
    assert (await hub.row(OUTBOX))["state"] == "held"
    assert await hub.rows(EFFECT_EDIT) == []


@pytest.mark.clause("B14.3")
async def test_who_looked_at_an_older_text_approves_and_edits_nothing(hub: StillHub) -> None:
    _, request = await held(hub)
    old = outbox.digest(PULL, "Something else.")
    with pytest.raises(NotNowError):
        await hub.do(lambda u: people.edit(u, request, "ann", text="Mine.", digest=old))
    with pytest.raises(NotNowError):
        await hub.do(lambda u: people.decide(u, request, "ann", approve=True, digest=old))
    assert (await hub.row(REQUEST))["state"] == "asked"


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize("given", ["", "-", "0" * 64, "short"])
async def test_an_approval_that_names_nothing_that_was_looked_at_is_refused_and_says_how(
    hub: StillHub, given: str
) -> None:
    _, request = await held(hub)
    given = outbox.digest(PULL, "Fixed.")[:7] if given == "short" else given
    with pytest.raises(NotSeenError, match=f"upright requests show {request}") as refused:
        await hub.do(lambda u: people.decide(u, request, "ann", approve=True, digest=given))
    assert refused.value.code == "approval.not_seen"
    assert (await hub.row(REQUEST))["state"] == "asked"
    assert (await hub.row(OUTBOX))["state"] == "held"


@pytest.mark.clause("B14.3")
async def test_the_beginning_of_a_digest_names_it(hub: StillHub) -> None:
    _, request = await held(hub)
    given = outbox.digest(PULL, "Fixed.")[:8]
    await hub.do(lambda u: people.decide(u, request, "ann", approve=True, digest=given))
    assert (await hub.row(OUTBOX))["state"] == "pending"


@pytest.mark.clause("B14.3")
async def test_a_no_needs_no_digest_and_one_to_another_effect_is_none(hub: StillHub) -> None:
    _, request = await held(hub)
    with pytest.raises(NotSeenError):
        await hub.do(lambda u: people.decide(u, request, "ann", approve=False, digest="0" * 64))
    await hub.do(lambda u: people.decide(u, request, "ann", approve=False))
    assert (await hub.row(OUTBOX))["state"] == "dead"


@pytest.mark.clause("B14.3")
async def test_what_is_settled_is_not_edited(hub: StillHub) -> None:
    _, request = await held(hub)
    await hub.do(lambda u: decided(u, request, "ann", approve=False))
    was = outbox.digest(PULL, "Fixed.")
    with pytest.raises(IllegalMoveError):
        await hub.do(lambda u: people.edit(u, request, "bob", text="Mine.", digest=was))
    assert await hub.rows(EFFECT_EDIT) == []


# ------------------------------------------------------------------ expiry, and asking again
@pytest.mark.clause("B14.3")
@pytest.mark.case("OC/59162")
async def test_a_late_yes_is_refused_and_told_how_to_ask_again(hub: StillHub) -> None:
    item, request = await expired(hub)
    with pytest.raises(NotNowError, match=r"which is a no.*upright ask-again"):
        await hub.do(lambda u: decided(u, request, "ann"))
    (notice,) = await hub.see(lambda c: intake.unread(c, item.session))
    assert notice.trigger.kind == "effect.dead"
    assert "not approved" in notice.trigger.content.text
    assert f"upright ask-again {request}" in notice.trigger.content.text
    assert (await shown(hub, request))["can"] == ["ask-again"]


@pytest.mark.clause("B14.3")
async def test_asked_again_it_is_the_same_effect_held_anew_with_its_grounds(hub: StillHub) -> None:
    item, request = await expired(hub)
    again = await hub.do(lambda u: approvals.ask_again(u, request, "ann"))
    assert await hub.do(lambda u: approvals.ask_again(u, request, "bob")) == again
    told, before = await shown(hub, again), await shown(hub, request)
    assert (told["state"], told["digest"]) == ("asked", before["digest"])
    assert (told["cause"], told["tainted_by"]) == (before["cause"], before["tainted_by"])
    assert (told["again_of"], before["asked_again"]) == (request, again)
    assert (before["state"], before["effect"]["state"], before["can"]) == ("expired", "dead", [])
    await hub.do(lambda u: decided(u, again, "ann"))
    (claimed,) = (await hub.do(lambda u: outbox.claim_due(u, 5))).taken
    assert (claimed.id, claimed.text) == (told["outbox_id"], "Fixed.")
    await hub.asleep(item)


@pytest.mark.clause("B14.3")
async def test_what_is_still_asked_or_was_denied_is_not_asked_again(hub: StillHub) -> None:
    _, request = await held(hub)
    with pytest.raises(NotNowError):
        await hub.do(lambda u: approvals.ask_again(u, request, "ann"))
    await hub.do(lambda u: decided(u, request, "ann", approve=False))
    with pytest.raises(NotNowError):
        await hub.do(lambda u: approvals.ask_again(u, request, "ann"))


def is_over(u: Unit, item: WorkItem) -> None:
    endings.cancel(u, item, "not wanted")


def said_otherwise(u: Unit, item: WorkItem) -> None:
    outbox.put(u, replace(drafted(item, "It works.", "k2"), state=OutboxState.PENDING))


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize("meanwhile", [is_over, said_otherwise])
async def test_what_is_not_wanted_any_more_is_not_asked_again(
    hub: StillHub, meanwhile: Callable[[Unit, WorkItem], None]
) -> None:
    item, request = await expired(hub)
    await hub.do(lambda u: meanwhile(u, item))
    with pytest.raises(NotNowError):
        await hub.do(lambda u: approvals.ask_again(u, request, "ann"))
    await hub.asleep(item) if meanwhile is said_otherwise else None


@pytest.mark.clause("B14.3")
async def test_a_question_is_not_asked_again_as_an_approval(hub: StillHub) -> None:
    item = await hub.opened()
    asking = requests.Asking(prompt="Which?", session=item.session, life_ms=LIFE_MS)
    request = await hub.do(lambda u: requests.ask(u, asking))
    hub.clock.go_on(LIFE_MS / 1000)
    await hub.do(deadlines.fire_due)
    with pytest.raises(NotNowError):
        await hub.do(lambda u: approvals.ask_again(u, request, "ann"))


# ------------------------------------------------------------------ nobody in reach
@pytest.mark.clause("B14.4")
async def test_without_anybody_who_could_answer_a_request_says_no_route_at_once(
    hub: StillHub,
) -> None:
    _, request = await held(hub)
    assert (await shown(hub, request))["no_route"] == approvers.NO_ROUTE
    stops = [row["stop"] for row in await hub.rows(EVENT)]
    assert stops.count("request.no_route") == 1


@pytest.mark.clause("B14.4")
async def test_somebody_who_is_added_is_a_route_and_that_is_told_once(hub: StillHub) -> None:
    _, request = await held(hub)
    await hub.do(lambda u: persons.add(u, "boss", ActorKind.OPERATOR, People()))
    await hub.do(deadlines.fire_due)
    await hub.do(deadlines.fire_due)
    assert (await shown(hub, request))["no_route"] == ""
    stops = [row["stop"] for row in await hub.rows(EVENT)]
    assert stops.count("request.route_found") == 1


@pytest.mark.clause("B14.4")
async def test_members_and_contacts_are_no_route(hub: StillHub) -> None:
    await hub.do(lambda u: persons.add(u, "ann", ActorKind.MEMBER, People()))
    await hub.do(lambda u: persons.add(u, "cal", ActorKind.CONTACT, People()))
    _, request = await held(hub)
    assert (await shown(hub, request))["no_route"] == approvers.NO_ROUTE
