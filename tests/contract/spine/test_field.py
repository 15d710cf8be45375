"""Cases from the field that no other test shows: silence, notices, destinations."""

from __future__ import annotations

import dataclasses

import pytest

from fixtures.agents import AT_ONCE, TEST, WAIT_CI, Agents, Say, ScriptedChat, call, worker
from fixtures.still_hub import ANN, CI, PULL, StillHub, trigger
from upright.api import Address, Destination, Effect
from upright.core.work import WorkState
from upright.store import deadlines, outbox, work
from upright.store.tables import OUTBOX, REQUEST, SESSION, TRIGGER

SILENCES = ("NO_REPLY", "NO", "HEARTBEAT_OK", "<silent/>", "I think I should say nothing.", "...")


@pytest.mark.clause("B8.7", "B15.1")
@pytest.mark.case("OC/36811")
async def test_what_a_model_merely_says_goes_nowhere(hub: StillHub) -> None:
    agents = Agents(hub, ScriptedChat(router=tuple(Say(text) for text in SILENCES)))
    for n in range(len(SILENCES)):
        asked = trigger("comment.created", by=ANN, thread=f"pr:{n}", address=Address.MENTION)
        await hub.one(asked)
        await agents.go()
    assert len(agents.chat.requests) == len(SILENCES)
    assert await hub.rows(OUTBOX) == []
    assert await hub.rows(REQUEST) == []


@pytest.mark.case("XX/waiting")
async def test_while_a_job_runs_nobody_is_asked(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, Say("It runs."), limits=AT_ONCE)
    agents.box.answer = lambda argv, stdin: None
    await agents.go()
    assert (await hub.item(item)).state is WorkState.WAITING_JOB
    assert await hub.rows(REQUEST) == []


@pytest.mark.clause("B15.1")
@pytest.mark.case("OC/92171")
async def test_a_wake_from_within_answers_where_the_item_was_opened(hub: StillHub) -> None:
    elsewhere = Destination(source="chat", kind="message", address=(("room", "9"),))
    nap = call("wait", {"for": "timer", "seconds": 60, "why": "look again"})
    agents, item = await worker(hub, nap, call("reply", {"text": "Looked again."}), WAIT_CI)
    await agents.go()
    said = trigger("chat.said", by=CI, thread="chat:9", reply_to=elsewhere)
    chat = (await hub.row(TRIGGER, id=(await hub.one(said)).id))["thread_id"]
    await hub.do(lambda u: work.subscribe(u, item.session, chat))
    last = await hub.one(trigger("chat.said", by=CI, thread="chat:9", reply_to=elsewhere))
    assert last.woke == (item.session,)
    hub.clock.go_on(61)
    await hub.do(deadlines.fire_due)
    await agents.go()
    effect = await hub.row(OUTBOX, session_id=item.session)
    assert effect["destination"]["address"] == [list(pair) for pair in PULL.address]
    assert (await hub.row(SESSION, id=item.session))["ended_at_ms"] is None


@pytest.mark.clause("B15.1")
@pytest.mark.case("OC/10837")
def test_an_effect_without_a_destination_cannot_be_made() -> None:
    for kind in (Effect, outbox.Draft):
        (field,) = [one for one in dataclasses.fields(kind) if one.name == "destination"]
        assert field.default is dataclasses.MISSING
        assert field.type == "Destination"
