"""The Matrix connector was away: what was said meanwhile comes once, in order, marked late."""

from __future__ import annotations

import pytest

from fixtures.matrix import listening, memory
from fixtures.synapse import Synapse, User
from upright.kit.late import FACT
from upright_matrix.timeline import TIMELINE

pytestmark = pytest.mark.timeout(300)  # hundreds of messages, and a server that starts again

MESSAGES = 205


@pytest.fixture(scope="module")
def ann(synapse_server: Synapse) -> User:
    return synapse_server.user("ann", shown="Ann")


@pytest.fixture
def bot(synapse: Synapse) -> User:
    return synapse.user("helper")


def talk(synapse: Synapse, ann: User, room: str) -> list[tuple[str, str]]:
    """Say much, and change some of it; return (kind, native id) of what can be known of it."""
    told = list[tuple[str, str]]()
    for n in range(MESSAGES):
        event = synapse.say(ann, room, f"message {n}")
        told.append(("message.created", event))
        if n % 20 == 5:
            told.append(("message.edited", synapse.edit(ann, room, event, f"message {n}, better")))
        if n % 50 == 7:  # what is deleted leaves no text, but for the fact
            told[-1] = ("message.deleted", synapse.redact(ann, room, event))
    return told


@pytest.mark.feature("matrix.gap", "matrix.catch_up")
@pytest.mark.clause("B2.3", "B1.6")
@pytest.mark.case("OC/26783", "OC/77594")
async def test_what_was_missed_comes_once_in_order_and_late(
    synapse: Synapse, ann: User, bot: User
) -> None:
    room = synapse.room(ann, bot, name="dev")
    async with listening(synapse, bot) as ears:
        synapse.say(ann, room, "before")
        await ears.one()
    held = ears.memory
    wanted = talk(synapse, ann, room)
    synapse.stop()
    synapse.start()
    async with listening(synapse, bot, held) as again:
        triggers = (await again.triggers(1 + len(wanted)))[1:]
        synapse.say(ann, room, "after")
        after = (await again.triggers(2 + len(wanted)))[-1]
    got = [(one.kind, one.dedupe[0].removeprefix("event:")) for one in triggers]
    assert got == wanted
    assert all(FACT in one.context.facts for one in triggers)
    assert FACT not in after.context.facts
    async with listening(synapse, bot, held):
        pass
    assert len(held.emitted) == 2 + len(wanted)  # and not again


async def test_a_gap_that_is_too_wide_is_told(
    synapse: Synapse, ann: User, bot: User, caplog: pytest.LogCaptureFixture
) -> None:
    room = synapse.room(ann, bot, name="dev")
    async with listening(synapse, bot) as ears:
        pass
    for n in range(TIMELINE + 3):
        synapse.say(ann, room, f"{n}")
    async with listening(synapse, bot, ears.memory, max_gap=1) as again:
        triggers = await again.triggers(TIMELINE + 1)
        assert "more was missed" in again.connector.health().gap
    assert [one.content.text for one in triggers] == [str(n) for n in range(2, TIMELINE + 3)]
    assert [one.message for one in caplog.records].count("source.gap") == 1


@pytest.mark.clause("B1.6")
async def test_a_lost_cursor_replays_nothing_and_warns_once(
    synapse: Synapse, ann: User, bot: User, caplog: pytest.LogCaptureFixture
) -> None:
    room = synapse.room(ann, bot, name="dev")
    for n in range(5):
        synapse.say(ann, room, f"yesterday {n}")
    held = memory(bot)
    held.cursors.append("garbage")
    async with listening(synapse, bot, held) as ears:
        assert held.emitted == []
        assert "lost" in ears.connector.health().gap
        synapse.say(ann, room, "today")
        assert (await ears.one()).content.text == "today"
    warned = [one for one in caplog.records if one.message == "source.cursor_lost"]
    assert len(warned) == 1
    assert warned[0].levelname == "WARNING"
