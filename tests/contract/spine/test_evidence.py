"""Evidence: done is what the store says, not what the worker says (B11.11)."""

from __future__ import annotations

import json

import pytest

from fixtures.agents import (
    AT_ONCE,
    DONE,
    PATCH,
    TEST,
    WAIT_CI,
    Agents,
    Say,
    call,
    complete,
    named,
    worker,
)
from fixtures.still_hub import CI, StillHub, trigger
from upright.api import Receipt
from upright.core.work import WorkItem, WorkState
from upright.store import outbox, relations
from upright.store.relations import Spawning
from upright.store.tables import OUTBOX
from upright.store.unit import Unit

pytestmark = pytest.mark.clause("B11.11")
REPLY = call("reply", '{"text":"Done."}')


def proof(text: str, claims: str = "succeeded") -> Say:
    given = [{"criterion": "tests pass", "proof": text, "claims": claims}]
    return call("complete", json.dumps({"evidence": given}))


async def refused(hub: StillHub, agents: Agents, item: WorkItem) -> str:
    """Return why the last call was refused; nothing is complete then."""
    assert (await hub.item(item)).state is not WorkState.COMPLETED
    told = [one for one in await agents.told(item.session) if "error" in one]
    return str(told[-1]["error"])


async def test_a_worker_that_says_done_while_its_job_runs_is_told_that_it_runs(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, TEST, DONE, WAIT_CI, limits=AT_ONCE)
    agents.box.answer = lambda argv, stdin: None
    await agents.go()
    assert "is running: wait for it, or stop it" in await refused(hub, agents, item)


async def test_done_with_a_commit_is_refused_as_well_while_a_job_runs(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, proof("c0ffee0 is it"), WAIT_CI, limits=AT_ONCE)
    agents.box.answer = lambda argv, stdin: None
    await agents.go()
    assert "is running" in await refused(hub, agents, item)


async def test_a_job_that_failed_proves_no_success(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, DONE, WAIT_CI)
    agents.box.answer = lambda argv, stdin: (1, b"1 failed\n")
    await agents.go()
    assert "exited 1; your claim is that it succeeded" in await refused(hub, agents, item)


async def test_a_job_that_failed_proves_that_it_failed(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, complete("failed", tests_pass=named("jb")))
    agents.box.answer = lambda argv, stdin: (1, b"1 failed\n")
    await agents.go()
    assert (await hub.item(item)).state is WorkState.COMPLETED


async def test_a_job_that_went_well_proves_no_failure(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, complete("failed", tests_pass=named("jb")), WAIT_CI)
    await agents.go()
    assert "your claim is that it failed" in await refused(hub, agents, item)


async def test_a_red_check_proves_no_success_and_a_green_one_does(hub: StillHub) -> None:
    agents, item = await worker(hub, complete(tests_pass=named("tr")), WAIT_CI)
    await agents.go()
    assert "tells of a failure" in await refused(hub, agents, item)
    accepted = await hub.one(trigger("ci.passed", by=CI))
    agents.chat.worker = [Say(), Say(), proof(f"CI says so: {accepted.id}")]
    await agents.go()
    assert (await hub.item(item)).state is WorkState.COMPLETED


async def test_what_is_another_items_proves_nothing(hub: StillHub) -> None:
    other = await hub.one(trigger("ci.passed", thread="pr:9"))
    agents, item = await worker(hub, proof(f"{other.id} is green"), WAIT_CI)
    await agents.go()
    assert "nothing that this item did or was told" in await refused(hub, agents, item)


async def test_an_effect_proves_something_once_it_has_a_receipt(hub: StillHub) -> None:
    done = complete(tests_pass=named("ob"))
    agents, item = await worker(hub, REPLY, done, WAIT_CI)
    await agents.go()
    assert "proves nothing before it was sent" in await refused(hub, agents, item)

    def send(u: Unit) -> None:
        (stored,) = outbox.claim_due(u, 5).taken
        outbox.delivered(u, stored, Receipt(provider_id="7", url="", found=False), 0.1)

    await hub.do(send)
    await hub.one(trigger("comment.created"))
    agents.chat.worker = [Say(), Say(), Say(), done]
    await agents.go()
    assert (await hub.item(item)).state is WorkState.COMPLETED


async def test_an_effect_that_was_discarded_is_no_receipt(hub: StillHub) -> None:
    agents, item = await worker(hub, REPLY, WAIT_CI)
    await agents.go()
    stored = await hub.row(OUTBOX)
    await hub.do(lambda u: outbox.discard(u, stored["id"], "a person said no"))
    agents.chat.worker = [Say(), Say(), complete(tests_pass=named("ob")), WAIT_CI]
    await agents.go()
    assert "dead: no receipt" in await refused(hub, agents, item)


async def test_a_commit_must_have_been_seen_by_this_item(hub: StillHub) -> None:
    agents, item = await worker(hub, proof("fixed in 1234567"), WAIT_CI)
    await agents.go()
    assert "has seen no commit 1234567" in await refused(hub, agents, item)


@pytest.mark.parametrize("commit", ["c0ffee0", "89abcdef"], ids=["its code", "its own push"])
async def test_a_commit_of_its_code_or_of_its_own_output_proves(hub: StillHub, commit: str) -> None:
    agents, item = await worker(hub, call("run", PATCH), proof(f"fixed in {commit}"))
    agents.box.answer = lambda argv, stdin: (0, b"[fix 89abcdef] Mend it\n")
    await agents.go()
    assert (await hub.item(item)).state is WorkState.COMPLETED


async def test_words_alone_prove_nothing(hub: StillHub) -> None:
    agents, item = await worker(hub, proof("I looked, and all is well."), WAIT_CI)
    await agents.go()
    assert "names no job, trigger, effect or commit" in await refused(hub, agents, item)


async def test_an_item_is_not_done_while_its_child_works(hub: StillHub) -> None:
    agents, item = await worker(hub, proof("c0ffee0"), WAIT_CI)
    asked = Spawning(goal="look", criteria=["seen"], taint=item.mandate.trust)

    def spawn(u: Unit) -> None:
        relations.spawn(u, item, asked)

    await hub.do(spawn)
    agents.chat.worker = [lambda r: proof("c0ffee0") if r.session == item.session else WAIT_CI]
    await agents.turns(2)
    assert "its child, is" in await refused(hub, agents, item)
