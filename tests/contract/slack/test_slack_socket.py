"""Socket Mode against the sandbox, over real sockets: what happens becomes triggers, once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from fixtures.connector import MemoryContext
from fixtures.eventually import eventually
from fixtures.slack import ANN, CAL, DEV, ME, accepted, listening, memory, sandbox, started, texts
from upright.api import (
    ActorKind,
    Address,
    ConnectorAuthFailedError,
    ConnectorNotReadyError,
    Destination,
    Trigger,
)
from upright.kit.late import FACT
from upright_slack.sandbox.faults import CallFault, CallRule, EventFault, EventRule

MESSAGES = 220


@dataclass(slots=True, kw_only=True)
class Slow(MemoryContext):
    """A store whose commit waits for a word."""

    commit: asyncio.Event = field(default_factory=asyncio.Event)

    async def emit(self, triggers: Sequence[Trigger], *, cursor: str | None = None) -> None:
        if triggers:
            await self.commit.wait()
        await MemoryContext.emit(self, triggers, cursor=cursor)


async def test_what_is_said_is_one_trigger_and_acknowledged_after_the_commit() -> None:
    context = memory()
    async with sandbox(context) as at, listening(at, context) as ears:
        ts = ears.say("is the build &lt;green&gt;? <https://example.org/1|see>")
        trigger = await ears.one()
        await ears.settled()
    assert trigger.content.text == "is the build <green>? see (https://example.org/1)"
    assert trigger.kind == "message.created"
    assert trigger.context.thread == f"slack:T0SANDBOX1/{DEV}/{ts}"
    assert trigger.context.address is Address.NONE
    address = (("channel", DEV), ("thread_ts", ts))
    assert trigger.context.reply_to == Destination(source="slack", kind="thread", address=address)
    assert dict(trigger.context.facts)["native_id"] == f"{DEV}:{ts}"
    assert FACT not in trigger.context.facts
    assert trigger.dedupe == ("event:Ev000000001", f"message:{DEV}:{ts}")


@pytest.mark.feature("slack.transport")
@pytest.mark.clause("B2.1")
async def test_what_is_not_stored_is_not_acknowledged() -> None:
    context = Slow(source="slack", secrets=memory().secrets)
    async with sandbox(context) as at, listening(at, context) as ears:
        ears.say("hello")
        await eventually(lambda: at.courier.deliveries[0].answers[:1] == ["late"])
        context.commit.set()
        await ears.settled()
        assert texts(await ears.triggers(1)) == ["hello"]


@pytest.mark.feature("slack.edits", "chat.noise")
@pytest.mark.case("GN/290")
async def test_an_edit_a_deletion_and_a_reaction_are_no_new_messages() -> None:
    context = memory()
    async with sandbox(context) as at, listening(at, context) as ears:
        ts, world = ears.say("first"), at.world
        ears.tell(world.edit(DEV, ts, "https://example.org/1", unfurl=True))
        ears.tell(world.edit(DEV, ts, "second"))
        ears.tell(world.react(DEV, ts, CAL, "eyes"))
        ears.tell(world.react(DEV, ts, CAL, "eyes", remove=True))
        ears.tell(world.delete(DEV, ts))
        ears.tell(world.join(DEV))
        ears.say("and on")
        await ears.settled()
        triggers = await ears.triggers(6)
    told = sorted((one.kind, one.context.edit_of) for one in triggers)
    native = f"{DEV}:{ts}"
    assert told == [
        ("message.created", ""),
        ("message.created", ""),
        ("message.deleted", native),
        ("message.edited", native),
        ("reaction.added", native),
        ("reaction.removed", native),
    ]
    assert not any(one.content.expects_reply for one in triggers)


@pytest.mark.feature("slack.dedupe")
@pytest.mark.case("BJ/2487", "BP/1355", "OC/58443")
async def test_the_same_event_by_three_roads_is_one_trigger() -> None:
    context = memory()
    async with sandbox(context) as at, listening(at, context) as ears:
        at.api.faults.events.append(EventRule(fault=EventFault.DUPLICATE))
        event = at.world.post(DEV, ANN, f"<@{ME}> look")
        ears.tell(event)
        ears.tell({**event, "type": "app_mention"})
        for _ in range(50):
            at.courier.again("Ev000000001")
        await ears.settled()
        trigger = await ears.one()
    assert trigger.context.address is Address.MENTION
    assert trigger.content.expects_reply


@pytest.mark.feature("slack.triggers")
@pytest.mark.case("VC/719")
async def test_an_answer_below_our_own_post_belongs_to_it_and_speaks_to_us() -> None:
    context = memory()
    async with sandbox(context) as at, listening(at, context) as ears:
        mine = at.world.post(DEV, ME, "the build is red", bot_id=at.world.bot)
        ears.tell(mine)
        ears.say("why?", thread_ts=str(mine["ts"]))
        await ears.settled()
        triggers = await ears.triggers(2)
    ours, asked = sorted(triggers, key=lambda one: one.content.text)
    assert ours.actor.kind is ActorKind.SELF
    assert asked.context.thread == ours.context.thread
    assert asked.context.address is Address.MENTION


@pytest.mark.feature("slack.triggers", "chat.loops")
async def test_direct_talk_bots_and_loops() -> None:
    context = memory()
    async with sandbox(context) as at:
        at.world.add_channel("D0ANN00001", "", direct=True)
        async with listening(at, context) as ears:
            ears.say("hello", channel="D0ANN00001")
            (direct,) = await ears.triggers(1)
            for n in range(25):
                ears.tell(at.world.post(DEV, "U0ROBOT001", f"beep {n}", bot_id="B0ROBOT001"))
            await ears.settled()
            triggers = await ears.triggers(22)
    assert direct.context.address is Address.DIRECT
    assert {one.actor.kind for one in triggers[1:]} == {ActorKind.BOT}


@pytest.mark.feature("chat.allow")
@pytest.mark.clause("B3.2")
async def test_where_only_mentions_count_our_threads_are_heard_all_the_same() -> None:
    context = memory()
    async with sandbox(context) as at:
        old = str(at.world.post(DEV, ANN, f"<@{ME}> before")["ts"])
        other = str(at.world.post(DEV, ANN, "among us")["ts"])
        async with listening(at, context, mention_only=("*",)) as ears:
            ears.say("talk")
            asked = ears.say(f"<@{ME}> a question")
            await ears.triggers(1)
            for root in (asked, old, other):
                ears.say(f"more of {root}", thread_ts=root)
            await ears.settled()
            triggers = await ears.triggers(3)
    assert sorted(texts(triggers)[1:]) == sorted([f"more of {asked}", f"more of {old}"])


@pytest.mark.feature("chat.allow")
async def test_a_channel_or_a_sender_that_is_not_allowed_is_not_heard() -> None:
    context = memory()
    async with sandbox(context) as at:
        at.world.add_channel("C0OTHER001", "other")
        async with listening(at, context, channels=(DEV,), senders=(ANN,)) as ears:
            ears.say("not for us", channel="C0OTHER001")
            ears.say("not by her", user=CAL)
            ears.say("for us")
            await ears.settled()
            assert texts(await ears.triggers(1)) == ["for us"]


# ------------------------------------------------------------------ catching up
async def test_at_the_first_start_no_history_is_a_trigger() -> None:
    context = memory()
    async with sandbox(context) as at:
        root = ""
        for n in range(50):
            context.pass_time(1)
            root = str(at.world.post(DEV, ANN, f"yesterday {n}")["ts"])
        retried = at.world.post(DEV, ANN, "yesterday, in a thread", thread_ts=root)
        at.courier.deliver(retried)  # Slack goes on trying for minutes
        async with listening(at, context) as ears:
            assert context.emitted == []
            ears.say("today")
            assert texts(await ears.triggers(1)) == ["today"]
            await ears.settled()
            await ears.triggers(1)


@pytest.mark.feature("slack.gap", "slack.catch_up")
@pytest.mark.clause("B1.6", "B2.3")
@pytest.mark.case("OC/26783", "OC/77594", "SP/1446")
async def test_what_was_missed_comes_once_in_order_and_late() -> None:
    context = memory()
    async with sandbox(context) as at:
        old = str(at.world.post(DEV, ANN, "an old thread")["ts"])
        async with listening(at, context) as ears:
            ears.say("before")
            await ears.triggers(1)
        at.api.faults.events.append(EventRule(fault=EventFault.LOSE, count=10_000))
        wanted = list[str]()
        for n in range(MESSAGES):
            context.pass_time(1)
            thread = {"thread_ts": old} if n % 7 == 0 else {}
            ts = ears.say(f"message {n}", **thread)
            wanted.append(f"message:{DEV}:{ts}")
            if n % 20 == 5:
                at.world.edit(DEV, ts, f"message {n}, better")
                mark = at.world.message(DEV, ts)["edited"]["ts"]
                wanted.append(f"edit:{DEV}:{ts}:{mark}")
            if n % 50 == 7:  # Slack's history tells nothing of what is gone
                at.world.delete(DEV, ts)
                wanted.pop()
        at.api.faults.clear()
        async with listening(at, context) as again:
            missed = (await again.triggers(1 + len(wanted)))[1:]
            at.courier.again("Ev000000002")  # redelivered, and known
            again.say("after")
            await again.triggers(2 + len(wanted))
            await eventually(lambda: at.courier.deliveries[-1].taken)
        assert [one.dedupe[-1] for one in missed] == wanted
        assert all(FACT in one.context.facts for one in missed)
        assert FACT not in accepted(context)[-1].context.facts
        async with listening(at, context) as last:
            assert len(await last.triggers(2 + len(wanted))) == 2 + len(wanted)  # not again


@pytest.mark.feature("slack.sandbox")
async def test_when_slack_ends_a_socket_a_new_one_is_there_and_nothing_is_missed() -> None:
    context = memory()
    async with sandbox(context) as at, listening(at, context) as ears:
        ears.say("one")
        await ears.triggers(1)
        at.api.faults.events.append(EventRule(fault=EventFault.LOSE))
        first = at.courier.sockets[0]
        await at.courier.refresh("refresh_requested")
        ears.say("between")
        await eventually(lambda: at.courier.sockets and at.courier.sockets[0] is not first)
        ears.say("two")
        assert sorted(texts(await ears.triggers(3))) == ["between", "one", "two"]


async def test_a_socket_that_is_cut_or_silent_is_trouble() -> None:
    context = memory()
    async with sandbox(context) as at, started(at, context, silence_s=0.05) as connector:
        with pytest.raises(ConnectorNotReadyError, match="silent"):
            await connector.listen()


async def test_a_socket_that_cannot_be_opened_is_trouble() -> None:
    context = memory()
    async with sandbox(context) as at, started(at, context) as connector:
        rule = CallRule(fault=CallFault.ERROR_503, method="apps.connections.open")
        at.api.faults.calls.append(rule)
        with pytest.raises(ConnectorNotReadyError, match="HTTP 503"):
            await connector.listen()
        at.api.tokens.app = "another"
        with pytest.raises(ConnectorAuthFailedError, match="invalid_auth"):
            await connector.listen()


@pytest.mark.clause("B1.6")
async def test_a_lost_cursor_replays_nothing_and_warns_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = memory()
    context.cursors.append("garbage")
    async with sandbox(context) as at:
        at.world.post(DEV, ANN, "yesterday")
        async with listening(at, context) as ears:
            ears.say("today")
            assert texts(await ears.triggers(1)) == ["today"]
            assert "lost" in ears.connector.health().gap
    assert [one.message for one in caplog.records].count("source.cursor_lost") == 1


async def test_what_was_said_before_we_came_into_a_channel_is_history() -> None:
    context = memory()
    async with sandbox(context) as at:
        at.world.add_channel("C0NEW00001", "new", member=False)
        async with listening(at, context):
            pass
        context.pass_time(10)
        at.world.post("C0NEW00001", ANN, "among us")
        at.world.join("C0NEW00001")
        at.world.post("C0NEW00001", ANN, "welcome")
        async with listening(at, context) as ears:
            assert texts(await ears.triggers(1)) == ["welcome"]


async def test_events_out_of_order_are_all_taken() -> None:
    context = memory()
    async with sandbox(context) as at, listening(at, context) as ears:
        at.api.faults.events.append(EventRule(fault=EventFault.HOLD))
        ears.say("first")
        ears.say("second")
        assert sorted(texts(await ears.triggers(2))) == ["first", "second"]


@pytest.mark.feature("slack.neighbours")
async def test_what_stands_around_a_message_is_told_with_it() -> None:
    context = memory()
    async with sandbox(context) as at, listening(at, context) as ears:
        for n in range(7):
            ears.say(f"{n}")
            await ears.triggers(n + 1)
        triggers = await ears.triggers(7)
        around = await ears.connector.neighbours(triggers[3], 2, 2)
        assert [one.text for one in around.before] == ["1", "2"]
        assert [one.text for one in around.after] == ["4", "5"]
