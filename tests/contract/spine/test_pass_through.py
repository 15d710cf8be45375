"""Pass-through on a real database: who gets a trigger, in its own transaction (B3.3, B6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.still_hub import ANN, BOSS, EVE, US, StillHub, trigger
from upright.api import Actor, ActorKind, Address, Trigger
from upright.core.gate import Mode
from upright.core.trigger import Disposition
from upright.core.wait import WaitKind, WaitState
from upright.core.work import Blocked, Stopped, WorkItem
from upright.store import intake, people, requests, sessions, threads, waits, work
from upright.store.tables import DELIVERY, EVENT, SESSION, THREAD, TRIGGER, WAIT
from upright.store.unit import Unit

RED = trigger(native="red-1", joins=("sha:c0ffee0", "branch:fix"))
GREEN = trigger("ci.passed", thread="check:99", joins=("branch:fix",), native="green-1")


async def inbox(hub: StillHub, session: str) -> list[str]:
    """Return the ids of what a session has not taken, in the order in which it will."""
    return [one.id for one in await hub.see(lambda c: intake.unread(c, session))]


async def wait_for(hub: StillHub, item: WorkItem, *refs: str) -> None:
    """Let a worker sleep until one of these threads moves."""

    def unit(u: Unit) -> None:
        for ref in refs:
            asked = waits.Asked(kind=WaitKind.EXTERNAL, ref=ref, why="CI runs")
            waits.register(u, item.id, asked)

    await hub.do(unit)
    await hub.asleep(item)


async def outcomes(hub: StillHub) -> list[str]:
    """Return how triggers met waits, in order."""
    return [event["data"]["outcome"] for event in await hub.rows(EVENT, stop="wait.matched")]


async def end(hub: StillHub, item: WorkItem) -> None:
    """Cancel an item and end its session, as a turn does that finds it over."""

    def unit(u: Unit) -> None:
        work.move(u, work.read(u.c, item.id), Stopped())
        (lease,) = [
            one
            for one in sessions.claim(u.c, u.now_ms, u.now_ms + 1000, 9)
            if one.session == item.session
        ] or [sessions.Claim(session=item.session, epoch=0)]
        sessions.finish(u, lease, retry_at_ms=None, end=True)
        intake.fall_back(u, item.session)

    await hub.do(unit)


async def second_worker(hub: StillHub, first: WorkItem) -> WorkItem:
    """Open another item, whose worker follows the first one's thread, too."""
    other = await hub.opened(trigger(thread="issue:1"))
    await hub.do(lambda u: work.subscribe(u, other.session, first.thread))
    await hub.asleep(other)
    return other


# ------------------------------------------------------------------ all that follow
@pytest.mark.clause("B6.1", "B6.2")
async def test_a_trigger_reaches_all_that_follow_once_in_order_and_not_the_router(
    hub: StillHub,
) -> None:
    first = await hub.opened(RED)
    await hub.asleep(first)
    other = await second_worker(hub, first)
    came = await hub.accept(*(trigger("comment.created", by=ANN) for _ in range(3)))
    ids = [one.id for one in came]
    assert {one.disposition for one in came} == {Disposition.WOKE}
    assert {one.woke for one in came} == {(first.session, other.session)}
    assert await inbox(hub, first.session) == ids
    assert await inbox(hub, other.session) == ids
    assert await inbox(hub, await hub.router()) == []


@pytest.mark.clause("B6.3")
async def test_what_comes_before_the_first_turn_waits_in_the_workers_inbox(hub: StillHub) -> None:
    item = await hub.opened(RED)
    came = await hub.one(trigger("comment.created", by=ANN))
    assert await inbox(hub, item.session) == [item.trigger, came.id]


@pytest.mark.clause("B3.3")
@pytest.mark.parametrize("kind", ["ci.queued", "ci.started"])
async def test_what_a_rule_ignores_is_context_and_wakes_nobody(hub: StillHub, kind: str) -> None:
    item = await hub.opened(RED)
    await wait_for(hub, item, item.thread)
    came = await hub.one(trigger(kind))
    assert (came.disposition, came.woke) == (Disposition.JOINED, ())
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is None
    assert (await hub.row(WAIT))["state"] == WaitState.OPEN
    assert await inbox(hub, item.session) == [came.id]


@pytest.mark.clause("B6.7")
async def test_own_output_is_context_for_those_who_follow(hub: StillHub) -> None:
    item = await hub.opened(RED)
    await hub.asleep(item)
    came = await hub.one(trigger("comment.created", by=US))
    assert (came.disposition, came.woke) == (Disposition.JOINED, ())
    assert await inbox(hub, item.session) == [came.id]


@pytest.mark.clause("B3.3")
async def test_a_source_that_takes_explicit_triggers_only_still_passes_a_followed_thread_through(
    hub: StillHub,
) -> None:
    item = await hub.opened(RED)
    await hub.asleep(item)
    rules = replace(hub.policy.rules, modes=(("gh", Mode.EXPLICIT_ONLY),))
    hub.policy = replace(hub.policy, rules=rules)
    passed = await hub.one(trigger("comment.created", by=EVE))
    fresh = await hub.one(trigger("comment.created", by=EVE, thread="pr:8"))
    assert (passed.disposition, passed.woke) == (Disposition.WOKE, (item.session,))
    assert fresh.disposition is Disposition.IGNORED


@pytest.mark.clause("B14.1")
async def test_passing_through_gives_a_stranger_no_authority(hub: StillHub) -> None:
    item = await hub.opened(RED)
    came = await hub.one(trigger("comment.created", by=EVE))
    row = await hub.row(TRIGGER, id=came.id)
    assert (row["actor_kind"], row["trust"]) == ("stranger", "stranger")
    assert came.woke == (item.session,)


# ------------------------------------------------------------------ one disposition
@pytest.mark.clause("B3.1")
@pytest.mark.parametrize(
    ("given", "disposition"),
    [
        (trigger("ci.failed"), Disposition.STARTED),
        (trigger("comment.created", by=ANN, address=Address.MENTION), Disposition.STARTED),
        (trigger("comment.created", by=ANN), Disposition.HELD),
        (trigger("comment.created", by=EVE, address=Address.MENTION), Disposition.HELD),
        (trigger("ci.queued"), Disposition.IGNORED),
        (
            trigger("push", by=Actor(id="x", kind=ActorKind.BOT)),
            Disposition.IGNORED,
        ),
        (trigger("comment.created", by=BOSS, address=Address.DIRECT), Disposition.STARTED),
    ],
    ids=["red", "mention", "aside", "stranger", "queued", "bot", "operator"],
)
async def test_a_trigger_that_nobody_follows_has_one_disposition_with_its_reason(
    hub: StillHub, given: Trigger, disposition: Disposition
) -> None:
    accepted = await hub.one(given)
    row = await hub.row(TRIGGER, id=accepted.id)
    assert row["disposition"] == accepted.disposition == disposition
    assert row["reason"]
    assert row["rule"]
    assert row["rules_version"] == "7"
    wakes = await hub.rows(DELIVERY, trigger_id=accepted.id, wake=True)
    assert len(wakes) == (disposition is Disposition.STARTED)


@pytest.mark.clause("B17.5")
async def test_without_a_model_an_explicit_trigger_is_held_for_a_person(hub: StillHub) -> None:
    hub.policy = replace(hub.policy, routes=False)
    accepted = await hub.one(RED)
    assert accepted.disposition is Disposition.HELD
    assert await hub.rows(SESSION) == []


@pytest.mark.clause("B3.4")
async def test_a_new_rule_counts_from_the_next_trigger_on_under_its_version(hub: StillHub) -> None:
    before = await hub.one(RED)
    hub.policy = replace(hub.policy, rules=replace(hub.policy.rules, version="8", rules=()))
    after = await hub.one(trigger(thread="pr:8"))
    rows = {row["id"]: row for row in await hub.rows(TRIGGER)}
    assert (rows[before.id]["rules_version"], rows[before.id]["rule"]) == ("7", "red")
    assert (rows[after.id]["rules_version"], rows[after.id]["rule"]) == ("8", "default")


# ------------------------------------------------------------------ the joining rule
@pytest.mark.clause("B6.10")
async def test_a_check_that_names_no_pull_request_finds_it_by_its_branch(hub: StillHub) -> None:
    item = await hub.opened(RED)
    await hub.asleep(item)
    came = await hub.one(GREEN)
    assert came.woke == (item.session,)
    assert len(await hub.rows(THREAD)) == 1


@pytest.mark.clause("B6.10")
async def test_a_check_of_an_items_own_branch_finds_its_worker(hub: StillHub) -> None:
    facts = (("branch_keys", "gh:acme/app@"),)
    item = await hub.opened(trigger(thread="branch:main", facts=facts))
    await hub.asleep(item)
    own = work.own_branch(item.id)
    came = await hub.one(
        trigger("ci.passed", thread="check:100", joins=(f"gh:acme/app@{own}",), code=None)
    )
    assert came.woke == (item.session,)


@pytest.mark.clause("B6.10")
async def test_keys_of_two_threads_link_them_and_their_followers_share(hub: StillHub) -> None:
    item = await hub.opened(RED)
    await hub.asleep(item)
    await hub.one(trigger("issue.opened", by=ANN, thread="issue:1"))
    await hub.one(trigger("pr.edited", by=ANN, joins=("issue:1",)))
    await hub.asleep(item)
    came = await hub.one(trigger("comment.created", by=EVE, thread="issue:1"))
    assert came.woke == (item.session,)


@pytest.mark.clause("B6.10", "B14.1")
@pytest.mark.parametrize(("by", "links"), [(ANN, True), (EVE, False)], ids=["member", "stranger"])
async def test_a_mention_links_threads_for_one_of_us_and_for_no_stranger(
    hub: StillHub, by: Actor, *, links: bool
) -> None:
    item = await hub.opened(RED)
    await hub.one(trigger("issue.opened", by=ANN, thread="issue:1"))
    mention = await hub.one(
        trigger("comment.created", by=by, thread="issue:2", related=("pr:7", "issue:1"))
    )
    assert (mention.woke == (item.session,)) is links
    row = await hub.row(TRIGGER, id=mention.id)
    linked = await hub.see(lambda c: threads.linked(c, row["thread_id"]))
    assert len(linked) == (2 if links else 0)


@pytest.mark.clause("B11.2", "B11.8")
@pytest.mark.case("XX/loop")
async def test_what_comes_for_a_blocked_item_waits_until_a_person_has_spoken(
    hub: StillHub,
) -> None:
    item = await hub.opened(RED)
    await hub.asleep(item)

    def block(u: Unit) -> None:
        requests.ask(u, requests.Asking(prompt="?", work=item.id, session=item.session))
        work.move(u, work.read(u.c, item.id), Blocked(), reason="?")

    await hub.do(block)
    came = await hub.one(trigger("comment.created", by=EVE))
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is None
    assert await hub.asleep_for_ever() == []
    await hub.do(lambda u: people.say(u, item.session, "go on"))
    assert (await inbox(hub, item.session))[0] == came.id
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is not None


async def test_linking_twice_is_no_error(hub: StillHub) -> None:
    await hub.one(trigger("issue.opened", by=ANN, thread="issue:1"))
    for _ in range(2):
        await hub.one(trigger("pr.edited", by=ANN, thread="pr:8", related=("issue:1",)))
    assert len(await hub.rows(THREAD)) == 2


# ------------------------------------------------------------------ an ended worker
@pytest.mark.clause("B6.6")
async def test_an_ended_worker_is_never_woken_and_the_router_gets_the_thread(hub: StillHub) -> None:
    item = await hub.opened(RED)
    await hub.asleep(item)
    await end(hub, item)
    came = await hub.one(trigger())
    assert (came.disposition, came.woke) == (Disposition.STARTED, (await hub.router(),))
    assert await inbox(hub, item.session) == []


@pytest.mark.clause("B6.4")
@pytest.mark.case("AI/161")
async def test_the_unread_tail_of_an_ended_worker_goes_to_the_router(hub: StillHub) -> None:
    item = await hub.opened(RED)
    await hub.asleep(item)
    tail = await hub.accept(trigger("comment.created", by=ANN), trigger("ci.failed"))
    await end(hub, item)
    router = await hub.router()
    assert await inbox(hub, router) == [one.id for one in tail]
    assert (await hub.row(SESSION, id=router))["ready_at_ms"] is not None
    assert await inbox(hub, item.session) == []


@pytest.mark.clause("B5.3", "B6.4")
async def test_context_that_an_ended_worker_did_not_read_wakes_no_router(hub: StillHub) -> None:
    item = await hub.opened(RED)
    await hub.asleep(item)
    await hub.accept(trigger("ci.queued"), trigger("comment.created", by=US))
    await end(hub, item)
    router = await hub.router()
    assert await inbox(hub, router) == []
    assert (await hub.row(SESSION, id=router))["ready_at_ms"] is None


@pytest.mark.clause("B6.4")
async def test_what_another_follower_has_got_is_not_given_to_the_router_as_well(
    hub: StillHub,
) -> None:
    item = await hub.opened(RED)
    await hub.asleep(item)
    other = await second_worker(hub, item)
    came = await hub.one(trigger("comment.created", by=ANN))
    await end(hub, item)
    assert await inbox(hub, other.session) == [came.id]
    assert await inbox(hub, await hub.router()) == []


@pytest.mark.clause("B6.4")
async def test_an_operators_unread_word_to_a_worker_that_ends_is_not_lost(hub: StillHub) -> None:
    item = await hub.opened(RED)
    await hub.asleep(item)
    await hub.do(lambda u: people.say(u, item.session, "use the other branch"))
    (word,) = await inbox(hub, item.session)
    await end(hub, item)
    assert await inbox(hub, await hub.router()) == [word]


# ------------------------------------------------------------------ waits
@pytest.mark.clause("B11.4", "B6.1")
@pytest.mark.case("HO/2565")
async def test_a_trigger_matches_the_wait_for_its_thread_in_its_own_transaction(
    hub: StillHub,
) -> None:
    item = await hub.opened(RED)
    await wait_for(hub, item, item.thread)
    await hub.one(GREEN)
    assert (await hub.row(WAIT))["state"] == WaitState.MATCHED
    assert await outcomes(hub) == ["match"]
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is not None


@pytest.mark.clause("B11.4")
async def test_a_trigger_of_a_linked_thread_matches_too(hub: StillHub) -> None:
    item = await hub.opened(RED)
    await wait_for(hub, item, item.thread)
    await hub.one(trigger("issue.opened", by=ANN, thread="issue:1", related=("pr:7",)))
    assert (await hub.row(WAIT))["state"] == WaitState.MATCHED


@pytest.mark.clause("B11.4")
async def test_a_trigger_for_a_wait_that_is_over_is_stale_and_delivered_all_the_same(
    hub: StillHub,
) -> None:
    item = await hub.opened(RED)
    await wait_for(hub, item, item.thread)
    await hub.do(lambda u: waits.cancel(u.c, item.id))
    asked = waits.Asked(kind=WaitKind.OPERATOR, ref="rq", why="a person")
    await hub.do(lambda u: waits.register(u, item.id, asked))
    came = await hub.one(GREEN)
    assert await outcomes(hub) == ["stale"]
    assert await inbox(hub, item.session) == [came.id]
    assert [row["state"] for row in await hub.rows(WAIT)] == ["cancelled", "open"]


@pytest.mark.clause("B11.4")
async def test_several_waits_for_one_thread_are_ambiguous_and_block_nothing(hub: StillHub) -> None:
    item = await hub.opened(RED)
    await wait_for(hub, item, item.thread, "elsewhere")
    doubled = WAIT.update().where(WAIT.c.ref == "elsewhere").values(ref=item.thread)
    await hub.do(lambda u: u.c.execute(doubled).rowcount)
    came = await hub.one(GREEN)
    assert await outcomes(hub) == ["ambiguous"]
    assert [row["state"] for row in await hub.rows(WAIT)] == ["open", "open"]
    assert await inbox(hub, item.session) == [came.id]


@pytest.mark.clause("B11.3")
async def test_a_second_wait_for_the_same_thread_replaces_the_first(hub: StillHub) -> None:
    item = await hub.opened(RED)
    await wait_for(hub, item, item.thread, item.thread)
    assert [row["state"] for row in await hub.rows(WAIT)] == ["cancelled", "open"]
    await hub.one(GREEN)
    assert await outcomes(hub) == ["match"]
