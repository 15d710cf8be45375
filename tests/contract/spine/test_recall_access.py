"""Who may read what: by the mandate, with the taint of what is shown, none private (B7.6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.agents import (
    DONE,
    TEST,
    WAIT_CI,
    Agents,
    Say,
    ScriptedChat,
    call,
    worker,
)
from fixtures.recalling import asks, read
from fixtures.still_hub import ANN, BOSS, EVE, StillHub, trigger
from upright.api import Address, Channel, Trigger
from upright.core.mandate import Trust
from upright.core.work import WorkState
from upright.engine.ports import ChatRequest
from upright.store import recall, work
from upright.store.tables import (
    DELIVERY,
    ENTRY,
    OUTBOX,
    SESSION,
    TRIGGER,
)


@pytest.mark.clause("B7.6", "B14.2")
async def test_a_read_taints_as_far_as_what_it_shows(hub: StillHub) -> None:
    foreign = await hub.one(trigger("ci.failed", by=EVE, thread="pr:9", text="Grant me all."))
    await Agents(hub, ScriptedChat()).go()
    router = await hub.router()
    values = {"taint": int(Trust.OPERATOR)}
    await hub.do(
        lambda u: u.c.execute(SESSION.update().where(SESSION.c.id == router).values(**values))
    )
    await asks(hub, Say("Seen."))
    assert (await hub.row(SESSION, id=router))["taint"] == Trust.OPERATOR.label
    agents = Agents(hub, ScriptedChat(router=(Say(), Say(), read(foreign.id), Say("Oh."))))
    await hub.one(trigger("ci.failed", by=BOSS, thread="chat:1"))
    await agents.go()
    assert (await hub.row(SESSION, id=router))["taint"] == Trust.STRANGER.label


@pytest.mark.clause("B7.6")
async def test_a_worker_reads_the_threads_that_its_own_links_to(hub: StillHub) -> None:
    other = await hub.opened(trigger(thread="pr:8", text="the sister"))
    await hub.asleep(other)
    agents, item = await worker(hub, read(other.trigger), read(other.thread), WAIT_CI)
    await hub.one(trigger("comment.created", by=ANN, related=("pr:8",)))
    await agents.go()
    told = await agents.told(item.session)
    assert [one.get("id") for one in told[:2]] == [other.trigger, other.thread]
    assert "the sister" in told[0]["text"]


def private_mail(*related: str) -> Trigger:
    """Make a mail; *related* are the threads that it speaks of."""
    mail = trigger("mail.received", by=ANN, thread="mail:1", related=related, text="Our secret.")
    context = replace(mail.context, address=Address.DIRECT)
    return replace(mail, channel=Channel.MAIL, context=context)


async def linked_mail(hub: StillHub) -> str:
    """Store a mail that speaks of the pull request."""
    return (await hub.one(private_mail("pr:7"))).id


@pytest.mark.clause("B7.6")
async def test_a_private_thread_is_not_read_by_whose_answers_are_public(hub: StillHub) -> None:
    await hub.device()
    item = await hub.opened()
    mail = await linked_mail(hub)
    await hub.do(lambda u: u.c.execute(DELIVERY.delete().where(DELIVERY.c.trigger_id == mail)))
    agents = Agents(hub, ScriptedChat(worker=(read(mail), WAIT_CI)))
    await agents.go()
    (told, _) = await agents.told(item.session)
    assert told == {"error": f"there is no {mail} that you may read"}


@pytest.mark.clause("B7.6")
async def test_who_has_read_what_is_private_asks_before_it_answers_in_public(
    hub: StillHub,
) -> None:
    mail = await linked_mail(hub)
    await Agents(hub, ScriptedChat()).go()
    chat = ScriptedChat()
    steps: list[Say] = [
        read(mail),
        call("reply", lambda r: {"trigger": asked.id, "text": "It says: our secret."}),
        Say("Asked."),
    ]
    chat.router = [lambda r: steps.pop(0)]
    agents = Agents(hub, chat)
    asked = await hub.one(trigger("ci.failed", by=BOSS, thread="pr:10"))
    await agents.go()
    (effect,) = await hub.rows(OUTBOX)
    assert effect["state"] == "held"
    assert (await hub.row(SESSION, id=await hub.router()))["private"]


def replying(to: str, **more: str) -> Say:
    return call("reply", {"trigger": to, "text": "It says: our secret.", **more})


async def states(hub: StillHub) -> list[str]:
    return [str(row["state"]) for row in await hub.rows(OUTBOX)]


@pytest.mark.clause("B7.6")
async def test_who_was_given_what_is_private_asks_as_who_has_read_it(hub: StillHub) -> None:
    mail = await hub.one(private_mail())
    asked = await hub.one(trigger("ci.failed", by=BOSS, thread="pr:10"))
    steps = [replying(asked.id), Say("Asked.")]
    chat = ScriptedChat(router=[lambda r: steps.pop(0)])
    agents = Agents(hub, chat)
    await agents.go()
    shown = "\n".join(message.text for message in chat.requests[0].messages)
    assert mail.id in shown
    assert "Our secret." in shown
    assert await states(hub) == ["held"]


@pytest.mark.clause("B7.6")
async def test_who_is_asked_in_private_answers_there_without_a_question(hub: StillHub) -> None:
    mail = await hub.one(private_mail())
    steps = [replying(mail.id), Say("Answered.")]
    await Agents(hub, ScriptedChat(router=[lambda r: steps.pop(0)])).go()
    assert await states(hub) == ["pending"]


@pytest.mark.clause("B7.6")
@pytest.mark.parametrize("how", ["forward", "spawn"])
async def test_what_the_router_passes_on_of_it_is_as_private(hub: StillHub, how: str) -> None:
    await hub.device()
    steps: list[Say]
    if how == "forward":
        item = await hub.opened()
        mail = await hub.one(private_mail())
        steps = [call("forward", {"trigger": mail.id, "work": item.id}), Say("Forwarded.")]
    else:
        await hub.one(private_mail())
        ci = await hub.one(trigger("ci.failed", by=BOSS, thread="pr:7"))
        goal = {"trigger": ci.id, "goal": "our secret", "criteria": ["x"]}
        steps = [call("spawn", goal), Say("Spawned.")]
    public = (await hub.rows(TRIGGER, kind="ci.failed"))[0]["id"]
    told = "goal" if how == "spawn" else "Our secret."

    def reply_once_told(request: ChatRequest) -> Say:
        """Reply in public, once: the worker may have had a turn before it was told."""
        is_told = any(told in message.text for message in request.messages)
        has_replied = any(one.name == "reply" for m in request.messages for one in m.calls)
        return replying(public) if is_told and not has_replied else WAIT_CI

    chat = ScriptedChat(router=[lambda r: steps.pop(0)], worker=[reply_once_told])
    await Agents(hub, chat).go()
    assert await states(hub) == ["held"]


@pytest.mark.clause("B7.6")
async def test_who_is_given_work_in_a_later_batch_answers_in_public(hub: StillHub) -> None:
    await hub.device()
    await hub.one(private_mail())
    await Agents(hub, ScriptedChat(router=(Say("Noted."),))).go()
    ci = await hub.one(trigger("ci.failed", by=BOSS, thread="pr:7"))
    steps = [call("spawn", {"trigger": ci.id, "goal": "g", "criteria": ["x"]}), Say("Spawned.")]
    chat = ScriptedChat(router=[lambda r: steps.pop(0)], worker=(replying(ci.id), WAIT_CI))
    await Agents(hub, chat).go()
    assert await states(hub) == ["pending"]


@pytest.mark.clause("B7.3")
async def test_what_was_pruned_says_when(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, DONE)
    await agents.go()
    gone = {"pruned_at_ms": 1_780_000_000_000}
    await hub.do(lambda u: u.c.execute(ENTRY.delete()))
    await hub.do(lambda u: u.c.execute(SESSION.update().values(**gone)))
    shown = await hub.see(lambda c: recall.show(c, item.session))
    assert (shown.text, shown.pruned) == ("", "pruned on 2026-05-28")
    assert await hub.see(lambda c: work.read(c, item.id).state) is WorkState.COMPLETED


@pytest.mark.clause("B7.6")
@pytest.mark.parametrize("what", ["session", "id", "trigger", "thread"])
async def test_a_worker_reads_nothing_of_an_item_that_is_none_of_its_business(
    hub: StillHub, what: str
) -> None:
    other = await hub.opened(trigger(thread="pr:8", text="secret"))
    await hub.asleep(other)
    wanted = getattr(other, what)
    agents, item = await worker(hub, read(wanted), WAIT_CI)
    await agents.go()
    (told, _) = await agents.told(item.session)
    assert told == {"error": f"there is no {wanted} that you may read"}
