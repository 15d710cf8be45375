"""What a person has typed in Matrix, just so: by that alone a request is answered there."""

from __future__ import annotations

from typing import Any, Final

import pytest

from fixtures.matrix import listening
from fixtures.synapse import Synapse, User

pytestmark = pytest.mark.timeout(180)  # the server of the session may have to be started
LINE: Final = "approve rq_01k0000000 4f2a91c07d"


@pytest.fixture(scope="module")
def ann(synapse_server: Synapse) -> User:
    return synapse_server.user("ann", shown="Ann")


@pytest.fixture(scope="module")
def bot(synapse_server: Synapse) -> User:
    return synapse_server.user("helper", shown="Helper")


@pytest.fixture
def room(synapse: Synapse, ann: User, bot: User) -> str:
    return synapse.room(ann, bot, name="dev")


@pytest.mark.clause("B14.3")
async def test_a_message_is_typed_with_or_without_a_mention_of_us(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    async with listening(synapse, bot) as ears:
        root = synapse.say(ann, room, LINE)
        for before in ("Helper: ", "@helper ", f"{bot.id}: "):
            synapse.say(ann, room, f"{before}{LINE}")
        in_thread = {"rel_type": "m.thread", "event_id": root}
        synapse.say(ann, room, LINE, **{"m.relates_to": in_thread})
        told = await ears.triggers(5)
    assert [one.content.typed for one in told] == [LINE] * 5


@pytest.mark.clause("B14.3", "B1.4")
async def test_an_edit_a_quote_a_notice_an_emote_a_file_and_our_own_words_are_not_typed(
    synapse: Synapse, ann: User, bot: User, room: str
) -> None:
    other = synapse.user("robot")
    synapse.invite(ann, room, other)
    synapse.join(other, room)
    async with listening(synapse, bot, bots=(other.id,)) as ears:
        first = synapse.say(ann, room, "wait")
        synapse.edit(ann, room, first, LINE)
        quoted: dict[str, Any] = {"m.relates_to": {"m.in_reply_to": {"event_id": first}}}
        synapse.say(ann, room, f"> <{other.id}> {LINE}\n\n{LINE}", **quoted)
        synapse.say(ann, room, f"> {LINE}")
        synapse.send(ann, room, {"msgtype": "m.notice", "body": LINE})
        synapse.send(ann, room, {"msgtype": "m.emote", "body": LINE})
        synapse.send(ann, room, {"msgtype": "m.file", "body": LINE, "url": "mxc://x/y"})
        synapse.say(other, room, LINE)
        synapse.say(bot, room, LINE)
        told = await ears.triggers(9)
    assert [one.content.typed for one in told] == ["wait", *[""] * 8]
