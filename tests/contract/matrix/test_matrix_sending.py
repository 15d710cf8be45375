"""The Matrix connector sends to a real Synapse: a message becomes visible once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from fixtures.matrix import memory, ready, settings
from fixtures.synapse import Synapse, User
from upright.api import (
    ConnectorAuthFailedError,
    Destination,
    Effect,
    PermanentSendError,
    RetryableSendError,
)
from upright_matrix.connector import MatrixConnector

pytestmark = pytest.mark.timeout(180)  # the server of the session may have to be started


@pytest.fixture(scope="module")
def ann(synapse_server: Synapse) -> User:
    return synapse_server.user("ann")


@pytest.fixture(scope="module")
def bot(synapse_server: Synapse) -> User:
    return synapse_server.user("helper")


@pytest.fixture(scope="module")
def room(synapse_server: Synapse, ann: User, bot: User) -> str:
    return synapse_server.room(ann, bot)


@pytest.fixture
async def connector(synapse: Synapse, bot: User) -> AsyncIterator[MatrixConnector]:
    async with ready(synapse, bot, memory(bot)) as started:
        yield started


def effect(text: str, room: str, root: str = "", *, key: str, tries: int = 0) -> Effect:
    address = (("room", room), ("root", root), ("event", root)) if root else (("room", room),)
    to = Destination(source="chat", kind="thread" if root else "room", address=address)
    return Effect(id="ob_1", destination=to, text=text, idempotency_key=key, tries=tries)


def said(synapse: Synapse, by: User, room: str) -> list[dict[str, object]]:
    """Return the contents of the bot's messages, oldest first."""
    events = synapse.messages(by, room)
    return [
        one["content"]
        for one in events
        if one["type"] == "m.room.message" and "helper" in one["sender"]
    ]


@pytest.mark.feature("matrix.thread")
@pytest.mark.clause("B15.1", "B15.4")
async def test_an_answer_goes_into_the_thread_in_html_and_plain(
    synapse: Synapse, ann: User, room: str, connector: MatrixConnector
) -> None:
    root = synapse.say(ann, room, "what fixed it?")
    text = "**Fixed** by [#7](https://example.org/7)"
    receipt = await connector.send(effect(text, room, root, key="a"))
    content = said(synapse, ann, room)[-1]
    assert content["body"] == "Fixed by #7 (https://example.org/7)"
    assert "<strong>Fixed</strong>" in str(content["formatted_body"])
    assert content["m.relates_to"] == {
        "rel_type": "m.thread",
        "event_id": root,
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": root},
    }
    assert receipt.provider_id in receipt.url
    assert not receipt.found


@pytest.mark.feature("matrix.idempotency")
@pytest.mark.clause("B15.2")
async def test_the_same_effect_is_visible_once(
    synapse: Synapse, ann: User, room: str, connector: MatrixConnector
) -> None:
    before = len(said(synapse, ann, room))
    first = await connector.send(effect("once", room, key="b"))
    second = await connector.send(effect("once", room, key="b"))
    third = await connector.send(effect("once", room, key="b", tries=1))
    assert second == first
    assert third == replace(first, found=True)
    assert len(said(synapse, ann, room)) == before + 1


@pytest.mark.feature("matrix.out")
@pytest.mark.clause("B15.4")
async def test_a_long_text_is_split_and_only_what_is_missing_is_sent_anew(
    synapse: Synapse, ann: User, room: str, connector: MatrixConnector
) -> None:
    before = len(said(synapse, ann, room))
    text = "\n\n".join(f"{n} " + "word " * 2_000 for n in range(9))
    receipt = await connector.send(effect(text, room, key="c"))
    ids = receipt.provider_id.split(",")
    assert len(ids) == len(said(synapse, ann, room)) - before > 1
    again = await connector.send(effect(text, room, key="c", tries=1))
    assert again.provider_id == receipt.provider_id
    words = "\n".join(str(one["body"]) for one in said(synapse, ann, room)[before:]).split()
    assert words == text.split()


async def test_a_room_that_is_not_ours_is_final(
    synapse: Synapse, ann: User, connector: MatrixConnector
) -> None:
    other = synapse.room(ann)
    for tries in (0, 1):
        with pytest.raises(PermanentSendError, match="gone, or refuses"):
            await connector.send(effect("hi", other, key="d", tries=tries))
    with pytest.raises(PermanentSendError, match="No destination"):
        await connector.send(effect("hi", "", key="d"))
    with pytest.raises(PermanentSendError, match="empty"):
        await connector.send(effect("  ", other, key="d"))


async def test_a_token_that_is_refused_says_so(synapse: Synapse, bot: User, room: str) -> None:
    wrong = replace(bot, token="wrong")
    async with ready(synapse, wrong, memory(wrong)) as connector:
        with pytest.raises(ConnectorAuthFailedError):
            await connector.send(effect("hi", room, key="e"))
        with pytest.raises(ConnectorAuthFailedError):
            await connector.validate()
        with pytest.raises(ConnectorAuthFailedError):
            await connector.listen()


async def test_a_server_that_is_gone_is_worth_another_try(
    synapse: Synapse, bot: User, room: str
) -> None:
    nowhere = replace(settings(synapse, bot.id), homeserver="http://127.0.0.1:1")
    connector = MatrixConnector("chat", nowhere)
    await connector.start(memory(bot))
    with pytest.raises(RetryableSendError):
        await connector.send(effect("hi", room, key="f"))
    await connector.stop(timeout_s=5)


async def test_the_live_check_names_who_we_are(
    synapse: Synapse, bot: User, connector: MatrixConnector
) -> None:
    probe = await connector.validate()
    assert probe.ok
    assert bot.id in probe.summary
    stranger = MatrixConnector("chat", settings(synapse, "@other:hub.test"))
    await stranger.start(memory(bot))
    assert not (await stranger.validate()).ok
    await stranger.stop(timeout_s=5)
