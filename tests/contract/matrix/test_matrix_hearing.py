"""The Matrix connector hears a real Synapse: what happens there becomes triggers, once."""

from __future__ import annotations

import pytest

from fixtures.matrix import listening
from fixtures.synapse import Synapse, User
from upright.api import ActorKind, Address, Destination

pytestmark = pytest.mark.timeout(180)  # the server of the session may have to be started


@pytest.fixture(scope="module")
def ann(synapse_server: Synapse) -> User:
    return synapse_server.user("ann", shown="Ann")


@pytest.fixture(scope="module")
def cal(synapse_server: Synapse) -> User:
    return synapse_server.user("cal")


@pytest.fixture(scope="module")
def bot(synapse_server: Synapse) -> User:
    return synapse_server.user("helper", shown="Helper")


@pytest.fixture
def room(synapse: Synapse, ann: User, bot: User, cal: User) -> str:
    """A room of three."""
    return synapse.room(ann, bot, cal, name="dev")


@pytest.mark.feature("matrix.transport", "matrix.dedupe")
@pytest.mark.clause("B1.6")
@pytest.mark.case("OP/1996")
async def test_at_the_first_start_no_history_is_a_trigger(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    for n in range(50):
        synapse.say(ann, room, f"yesterday {n}")
    async with listening(synapse, bot) as ears:
        event = synapse.say(ann, room, "is the build green?")
        trigger = await ears.one()
    assert (trigger.kind, trigger.content.text) == ("message.created", "is the build green?")
    assert (trigger.actor.id, trigger.actor.name) == (ann.id, "Ann")
    assert trigger.actor.kind is ActorKind.STRANGER
    assert trigger.context.thread == f"matrix:{room}/{event}"
    assert trigger.context.address is Address.NONE
    assert trigger.content.title == "dev"
    address = (("room", room), ("root", event), ("event", event))
    assert trigger.context.reply_to == Destination(source="chat", kind="thread", address=address)
    assert trigger.dedupe == (f"event:{event}",)
    facts = dict(trigger.context.facts)
    assert (facts["native_id"], facts["room_name"]) == (event, "dev")
    assert "late" not in facts


@pytest.mark.feature("matrix.edits")
@pytest.mark.case("GN/290")
async def test_an_edit_a_deletion_and_a_reaction_are_no_new_messages(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    async with listening(synapse, bot) as ears:
        said = synapse.say(ann, room, "first")
        synapse.edit(ann, room, said, "second")
        reaction = synapse.react(ann, room, said, "👍")
        await ears.triggers(3)  # what is deleted before we read it, we never see
        synapse.redact(ann, room, reaction)
        synapse.redact(ann, room, said)
        after = synapse.say(ann, room, "and on")
        triggers = await ears.triggers(6)
    assert [one.kind for one in triggers] == [
        "message.created",
        "message.edited",
        "reaction.added",
        "reaction.removed",
        "message.deleted",
        "message.created",
    ]
    assert [one.context.edit_of for one in triggers] == ["", said, said, reaction, said, ""]
    assert triggers[1].content.text == "second"
    assert dict(triggers[2].context.facts)["reaction"] == "👍"
    threads = [one.context.thread for one in triggers]
    assert threads == [f"matrix:{room}/{said}"] * 5 + [f"matrix:{room}/{after}"]
    assert not any(one.content.expects_reply for one in triggers)


async def test_threads_and_replies_belong_to_what_they_answer(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    root = synapse.say(ann, room, "root")
    async with listening(synapse, bot) as ears:
        in_thread = {"rel_type": "m.thread", "event_id": root}
        synapse.say(ann, room, "in the thread", **{"m.relates_to": in_thread})
        answered = synapse.say(ann, room, "a question")
        reply = {"m.in_reply_to": {"event_id": answered}}
        body = f"> <{ann.id}> a question\n> of two lines\n\nan answer"
        second = synapse.say(ann, room, body, **{"m.relates_to": reply})
        again = {"m.in_reply_to": {"event_id": second}}
        synapse.say(ann, room, "an answer to that", **{"m.relates_to": again})
        triggers = await ears.triggers(4)
    threads = [one.context.thread for one in triggers]
    assert threads == [f"matrix:{room}/{root}", *[f"matrix:{room}/{answered}"] * 3]
    assert triggers[2].content.text == "an answer"
    assert dict(triggers[2].context.facts)["in_reply_to"] == answered


async def test_our_own_words_and_those_of_bots_are_told_as_such(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    other = synapse.user("robot")
    synapse.invite(ann, room, other)
    synapse.join(other, room)
    async with listening(synapse, bot, bots=(other.id,)) as ears:
        synapse.say(bot, room, "mine")
        synapse.send(ann, room, {"msgtype": "m.notice", "body": "a notice"})
        synapse.say(other, room, "beep")
        triggers = await ears.triggers(3)
    assert [one.actor.kind for one in triggers] == [
        ActorKind.SELF,
        ActorKind.BOT,
        ActorKind.BOT,
    ]


@pytest.mark.feature("matrix.triggers")
@pytest.mark.clause("B3.2")
async def test_a_mention_by_field_pill_or_name_speaks_to_us(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    pill = f'<a href="https://matrix.to/#/{bot.id}">Helper</a> look'
    async with listening(synapse, bot) as ears:
        synapse.say(ann, room, "look", **{"m.mentions": {"user_ids": [bot.id]}})
        synapse.say(ann, room, "Helper look", format="org.matrix.custom.html", formatted_body=pill)
        synapse.say(ann, room, "helper: look")
        synapse.say(ann, room, "@Helper look")
        synapse.say(ann, room, "the helper said so", **{"m.mentions": {}})
        synapse.say(ann, room, "Helperina: look")
        triggers = await ears.triggers(6)
    addresses = [one.context.address for one in triggers]
    assert addresses == [Address.MENTION] * 4 + [Address.NONE] * 2
    assert [one.content.expects_reply for one in triggers] == [True] * 4 + [False] * 2


@pytest.mark.feature("matrix.triggers")
async def test_an_answer_to_what_we_said_speaks_to_us(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    mine = synapse.say(bot, room, "the build is red")
    async with listening(synapse, bot) as ears:
        reply = {"m.in_reply_to": {"event_id": mine}}
        synapse.say(ann, room, "why?", **{"m.relates_to": reply})
        synapse.say(
            ann, room, "why?", **{"m.relates_to": {"rel_type": "m.thread", "event_id": mine}}
        )
        triggers = await ears.triggers(2)
    assert [one.context.address for one in triggers] == [Address.MENTION] * 2
    assert {one.context.thread for one in triggers} == {f"matrix:{room}/{mine}"}


@pytest.mark.feature("matrix.triggers")
async def test_a_talk_of_two_is_direct(synapse: Synapse, ann: User, bot: User) -> None:
    alone, listed = synapse.room(ann, bot), synapse.room(ann, bot, synapse.user("cal"))
    path = f"/_matrix/client/v3/user/{bot.id}/account_data/m.direct"
    synapse.call("PUT", path, {ann.id: [listed]}, token=bot.token)
    async with listening(synapse, bot) as ears:
        synapse.say(ann, alone, "hello")
        synapse.say(ann, listed, "hello")
        triggers = await ears.triggers(2)
    assert [one.context.address for one in triggers] == [Address.DIRECT] * 2


@pytest.mark.clause("B3.2")
async def test_where_only_mentions_count_our_threads_are_heard_all_the_same(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    old = synapse.say(ann, room, "asked before", **{"m.mentions": {"user_ids": [bot.id]}})
    other = synapse.say(ann, room, "among us")
    async with listening(synapse, bot, mention_only=("*",)) as ears:
        synapse.say(ann, room, "talk")
        asked = synapse.say(ann, room, "helper: a question")
        for root in (asked, old, other):
            relates = {"rel_type": "m.thread", "event_id": root}
            synapse.say(ann, room, "more", **{"m.relates_to": relates})
        synapse.say(ann, room, "helper: the end")
        triggers = await ears.triggers(4)
    texts = [(one.content.text, one.context.thread.rpartition("/")[2]) for one in triggers]
    assert texts[:3] == [("helper: a question", asked), ("more", asked), ("more", old)]


@pytest.mark.feature("chat.allow")
async def test_a_room_or_a_sender_that_is_not_allowed_is_not_heard(
    synapse: Synapse, ann: User, bot: User, cal: User, *, room: str
) -> None:
    other = synapse.room(ann, bot, name="private")
    async with listening(synapse, bot, rooms=(room,), senders=(ann.id,)) as ears:
        synapse.say(ann, other, "not for us")
        synapse.say(cal, room, "not by her")
        synapse.say(ann, room, "for us")
        assert (await ears.one()).content.text == "for us"


@pytest.mark.feature("chat.allow")
async def test_an_invitation_is_accepted_from_the_allow_list_alone(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    eve = synapse.user("eve")
    async with listening(synapse, bot, invites_from=(ann.id,)) as ears:
        for by, said in ((eve, "come here"), (ann, "hello")):
            body = {"preset": "private_chat", "invite": [bot.id]}
            made = synapse.call("POST", "/_matrix/client/v3/createRoom", body, token=by.token)
            synapse.say(by, made["room_id"], said)  # said before anybody could have joined
        trigger = await ears.one()
    assert trigger.content.text == "hello"
    assert trigger.context.address is Address.DIRECT


async def test_what_was_said_before_we_came_is_history(synapse: Synapse, ann: User) -> None:
    bot = synapse.user("guest")
    async with listening(synapse, bot, invites_from=("*:hub.test",)) as ears:
        body = {"preset": "private_chat", "name": "old"}
        made = synapse.call("POST", "/_matrix/client/v3/createRoom", body, token=ann.token)[
            "room_id"
        ]
        for n in range(5):
            synapse.say(ann, made, f"before {n}")
        synapse.invite(ann, made, bot)
        synapse.say(ann, made, "welcome")
        assert (await ears.one()).content.text == "welcome"


async def test_a_bot_that_talks_without_end_is_paused(
    synapse: Synapse,
    ann: User,
    bot: User,
    room: str,
    *,
    cal: User,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listening(synapse, bot, bots=(cal.id,)) as ears:
        for n in range(25):
            synapse.say(cal, room, f"{n}")
        synapse.say(ann, room, "a person")
        triggers = await ears.triggers(22)
    assert triggers[-1].content.text == "a person"
    assert [one.message for one in caplog.records].count("chat.loop_paused") == 1


@pytest.mark.feature("matrix.neighbours")
async def test_what_stands_around_a_message_is_told_with_it(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    async with listening(synapse, bot) as ears:
        for n in range(7):
            synapse.say(ann, room, f"{n}")
        triggers = await ears.triggers(7)
        around = await ears.connector.neighbours(triggers[3], 2, 2)
    assert [one.text for one in around.before] == ["1", "2"]
    assert [one.text for one in around.after] == ["4", "5"]
    assert around.before[0].author.id == ann.id


@pytest.mark.case("MN/525")
async def test_after_a_restart_from_the_token_the_room_is_known_whole(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    async with listening(synapse, bot) as ears:
        synapse.say(ann, room, "one")
        await ears.one()
        memory = ears.memory
    async with listening(synapse, bot, memory) as again:
        synapse.say(ann, room, "two")
        (_, second) = await again.triggers(2)
        running = again.connector._started().ear.translator.rooms.met(room)
    assert (second.content.title, second.actor.name) == ("dev", "Ann")
    assert running is not None
    assert len(running.members) == 3
    assert running.power_levels["redact"] == 50
