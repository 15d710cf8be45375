"""Life: what a connector raises decides its state, and how soon it is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.eventually import eventually
from fixtures.plugins import Fake, FakeSettings, FixedClock, Recorded
from upright.api import (
    Actor,
    Appointment,
    Channel,
    Connector,
    ConnectorAuthFailedError,
    ConnectorNotReadyError,
    Content,
    Context,
    Destination,
    Effect,
    InboundRequest,
    Neighbours,
    PermanentSendError,
    Probe,
    Trigger,
    TriggerRejectedError,
    UnknownSendError,
)
from upright.core.connector import ConnectorState
from upright.plugin.breaker import BreakerLimits
from upright.plugin.life import Life, LifeParts
from upright.settings.secrets import Secrets

pytestmark = pytest.mark.looptime

EFFECT = Effect(
    id="ob_1",
    destination=Destination(source="room", kind="x", address=()),
    text="hello",
    idempotency_key="k",
)
REQUEST = InboundRequest(headers={}, body=b"")
HEARD = Trigger(
    kind="x",
    channel=Channel.CHAT,
    actor=Actor(id="ann"),
    content=Content(),
    context=Context(thread="t"),
    dedupe=("k",),
)


@asynccontextmanager
async def living(fake: Fake, parts: LifeParts) -> AsyncIterator[Life]:
    life = Life("room", fake.offered(), FakeSettings(), parts)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(life.run())
        try:
            yield life
        finally:
            task.cancel()


async def test_a_connector_that_starts_is_ready_and_is_stopped_in_order(
    parts: LifeParts, recorded: Recorded
) -> None:
    fake = Fake()
    async with living(fake, parts) as life:
        await recorded.until(ConnectorState.READY)
        await eventually(lambda: "listen" in fake.log)
        assert await life.receive(REQUEST) == ()
        assert (await life.send(EFFECT)).provider_id == "ob_1"
    assert recorded.states() == ["loading", "ready", "stopped"]
    assert fake.log == ["make room", "start", "listen", "receive", "stop"]


async def test_a_connector_that_is_not_ready_backs_off_and_comes_back(
    parts: LifeParts, recorded: Recorded
) -> None:
    fake = Fake(starts=[ConnectorNotReadyError("down"), ConnectorNotReadyError("down"), None])
    async with living(fake, parts):
        took_s = await recorded.until(ConnectorState.READY)
    assert 15.0 <= took_s < 15.5  # half of 10 s, then half of 20 s
    assert recorded.states()[:5] == ["loading", "backing_off", "loading", "backing_off", "loading"]
    assert recorded.standings[1].reason == "down"


async def test_what_the_service_asks_for_is_waited_out(
    parts: LifeParts, recorded: Recorded
) -> None:
    fake = Fake(starts=[ConnectorNotReadyError("slow down", retry_after_s=60.0)])
    async with living(fake, parts):
        assert 60.0 <= await recorded.until(ConnectorState.READY) < 60.5


async def test_a_start_that_hangs_is_cut_off(parts: LifeParts, recorded: Recorded) -> None:
    class Hanging(Fake):
        async def start(self, context: object) -> None:
            await asyncio.Event().wait()

    fake = Hanging()
    async with living(fake, parts):
        assert 30.0 <= await recorded.until(ConnectorState.BACKING_OFF) < 30.5
    assert recorded.standings[1].reason == "no answer in time"
    assert fake.log == ["make room", "stop"]


async def test_refused_credentials_wait_for_a_person(parts: LifeParts, recorded: Recorded) -> None:
    fake = Fake(starts=[ConnectorAuthFailedError("401"), None])
    async with living(fake, parts) as life:
        await recorded.until(ConnectorState.NEEDS_AUTH)
        await asyncio.sleep(100_000)  # virtual: looptime
        assert life.standing.state is ConnectorState.NEEDS_AUTH
        life.retry()
        assert await recorded.until(ConnectorState.READY) < 1.0


async def test_an_unforeseen_error_is_failed_with_its_name_and_is_tried_again(
    parts: LifeParts, recorded: Recorded
) -> None:
    fake = Fake(starts=[KeyError("id"), None])
    async with living(fake, parts):
        await recorded.until(ConnectorState.READY)
    assert recorded.states()[:4] == ["loading", "failed", "loading", "ready"]
    assert recorded.standings[1].reason == "KeyError: 'id'"


async def test_a_missing_secret_needs_a_person(
    parts: LifeParts, recorded: Recorded, tmp_path: Path
) -> None:
    class Asking(Fake):
        async def start(self, context: object) -> None:
            assert hasattr(context, "secret")
            context.secret(FakeSettings().token)

    async with living(Asking(), replace(parts, secrets=Secrets({}, tmp_path))):
        await recorded.until(ConnectorState.NEEDS_AUTH)
    assert "env:TOKEN" in recorded.standings[1].reason


async def test_trouble_while_sending_moves_the_state_and_sends_nothing_more(
    parts: LifeParts,
    recorded: Recorded,
) -> None:
    fake = Fake(sends=[ConnectorNotReadyError("gone", retry_after_s=5.0)])
    async with living(fake, parts) as life:
        await recorded.until(ConnectorState.READY)
        with pytest.raises(ConnectorNotReadyError):
            await life.send(EFFECT)
        await recorded.until(ConnectorState.BACKING_OFF)
        with pytest.raises(ConnectorNotReadyError, match="room is backing_off: gone"):
            await life.send(EFFECT)
        await recorded.until(ConnectorState.READY)
        assert (await life.send(EFFECT)).provider_id == "ob_1"


async def test_webhooks_are_taken_while_the_successor_starts(
    parts: LifeParts, recorded: Recorded
) -> None:
    fake = Fake(starts=[None, ConnectorNotReadyError("down")], sends=[ConnectorNotReadyError("x")])
    async with living(fake, parts) as life:
        await recorded.until(ConnectorState.READY)
        with pytest.raises(ConnectorNotReadyError):
            await life.send(EFFECT)
        await recorded.until(ConnectorState.BACKING_OFF)
        assert await life.receive(REQUEST) == ()


async def test_a_connector_with_its_own_stream_is_stopped_before_its_successor_starts(
    parts: LifeParts,
    recorded: Recorded,
) -> None:
    fake = Fake(receives=False, sends=[ConnectorNotReadyError("x")])
    async with living(fake, parts) as life:
        await recorded.until(ConnectorState.READY)
        await eventually(lambda: "listen" in fake.log)
        with pytest.raises(ConnectorNotReadyError):
            await life.send(EFFECT)
        await recorded.until(ConnectorState.BACKING_OFF)
        await recorded.until(ConnectorState.READY)
        await eventually(lambda: fake.log.count("listen") == 2)
    assert fake.log == 2 * ["make room", "start", "listen", "stop"]


async def test_what_goes_wrong_while_listening_is_a_state_and_it_listens_anew(
    parts: LifeParts, recorded: Recorded
) -> None:
    fake = Fake(hears=[ConnectorNotReadyError("gone"), None])
    async with living(fake, parts):
        await recorded.until(ConnectorState.BACKING_OFF)
        await recorded.until(ConnectorState.READY)
        await eventually(lambda: fake.log.count("listen") == 2)
    assert [one.reason for one in recorded.standings if one.reason] == ["gone"]


async def test_what_a_listeners_group_of_tasks_raised_is_read_like_the_error_itself(
    parts: LifeParts, recorded: Recorded
) -> None:
    inner = ExceptionGroup("two", [ConnectorNotReadyError("gone", retry_after_s=90.0)])
    async with living(Fake(hears=[ExceptionGroup("tasks", [inner]), None]), parts):
        await recorded.until(ConnectorState.BACKING_OFF)
        took_s = await recorded.until(ConnectorState.READY)
    assert took_s >= 90.0
    assert [one.reason for one in recorded.standings if one.reason] == ["gone"]


async def test_a_listener_that_ends_by_itself_has_nothing_more_to_say(
    parts: LifeParts, recorded: Recorded
) -> None:
    fake = Fake()
    async with living(fake, parts) as life:
        await recorded.until(ConnectorState.READY)
        await eventually(lambda: "listen" in fake.log)
        assert life.standing.state is ConnectorState.READY
        assert (await life.send(EFFECT)).provider_id == "ob_1"


async def test_refused_credentials_while_sending_are_no_failed_effect(
    parts: LifeParts, recorded: Recorded
) -> None:
    fake = Fake(sends=[ConnectorAuthFailedError("401")])
    async with living(fake, parts) as life:
        await recorded.until(ConnectorState.READY)
        with pytest.raises(ConnectorNotReadyError, match="401"):
            await life.send(EFFECT)
        await recorded.until(ConnectorState.NEEDS_AUTH)


async def test_an_unforeseen_error_while_sending_is_unknown(
    parts: LifeParts, recorded: Recorded
) -> None:
    fake = Fake(sends=[RuntimeError("cut"), PermanentSendError("404")])
    async with living(fake, parts) as life:
        await recorded.until(ConnectorState.READY)
        with pytest.raises(UnknownSendError, match="RuntimeError: cut"):
            await life.send(EFFECT)
        with pytest.raises(PermanentSendError):
            await life.send(EFFECT)
        assert life.standing.state is ConnectorState.READY


async def test_before_the_first_start_nothing_is_received(
    parts: LifeParts, recorded: Recorded
) -> None:
    life = Life("room", Fake().offered(), FakeSettings(), parts)
    assert not life.capabilities().receives
    with pytest.raises(ConnectorNotReadyError, match="room is loading"):
        await life.receive(REQUEST)


async def test_who_waits_for_the_first_try_learns_of_its_end_good_or_bad(
    parts: LifeParts, recorded: Recorded
) -> None:
    bad = Fake(starts=[ConnectorAuthFailedError("no")])
    for fake, state in ((Fake(), ConnectorState.READY), (bad, ConnectorState.NEEDS_AUTH)):
        async with living(fake, parts) as life:
            await life.tried()
            assert life.standing.state is state


async def test_a_stop_that_raises_or_hangs_stops_nothing_else(
    parts: LifeParts, recorded: Recorded
) -> None:
    class Stubborn(Fake):
        async def stop(self, timeout_s: float) -> None:
            await asyncio.Event().wait()

    async with living(Stubborn(), parts):
        await recorded.until(ConnectorState.READY)
    assert recorded.states()[-1] == "stopped"


async def test_a_connector_emits_under_its_own_name(parts: LifeParts, recorded: Recorded) -> None:
    fake = Fake()
    async with living(fake, parts):
        await recorded.until(ConnectorState.READY)
        assert fake.context is not None
        await fake.context.emit((), cursor="7")
        assert await fake.context.cursor() == "cursor of room"
        assert fake.context.source == "room"
        assert fake.context.log.name == "upright.source.room"
        assert fake.context.now().year == 2026
    assert recorded.emitted == [("room", 0, "7")]


# ------------------------------------------------------------------ the breaker
@pytest.mark.feature("common.breaker")
async def test_what_breaks_right_after_each_start_rests_for_longer_in_the_end(
    parts: LifeParts, recorded: Recorded
) -> None:
    breaks = replace(parts, breaker=BreakerLimits(breaks=3, rest_s=900.0))
    fake = Fake(hears=[KeyError("poison") for _ in range(3)])
    async with living(fake, breaks):
        await recorded.until(ConnectorState.FAILED)
        for _ in range(2):
            await recorded.until(ConnectorState.READY)
            await recorded.until(ConnectorState.FAILED)
        said = recorded.standings[-1].reason
        assert await recorded.until(ConnectorState.READY) >= 900.0
    assert "broke 3 times in a row; rests for 15 min" in said


async def test_a_person_closes_the_breaker(parts: LifeParts, recorded: Recorded) -> None:
    breaks = replace(parts, breaker=BreakerLimits(breaks=1, rest_s=900.0))
    fake = Fake(starts=[KeyError("x")])
    async with living(fake, breaks) as life:
        await recorded.until(ConnectorState.FAILED)
        life.retry()
        assert await recorded.until(ConnectorState.READY) < 1.0


@pytest.mark.feature("common.breaker")
async def test_a_request_that_breaks_the_connector_is_a_dead_letter_and_no_more(
    parts: LifeParts, recorded: Recorded
) -> None:
    fake = Fake(receipts=[KeyError("x"), TriggerRejectedError("no")])
    async with living(fake, parts) as life:
        await recorded.until(ConnectorState.READY)
        with pytest.raises(KeyError):
            await life.receive(REQUEST)
        with pytest.raises(TriggerRejectedError):
            await life.receive(REQUEST)
        assert (life.dead.count, life.dead.last) == (1, "KeyError: 'x'")
        assert life.standing.state is ConnectorState.READY
        assert await life.receive(REQUEST) == ()


# ------------------------------------------------------------------ the live check
@pytest.mark.parametrize(
    ("probe", "said"),
    [
        (ConnectorAuthFailedError("bad token"), "bad token"),
        (KeyError("x"), "its check broke: KeyError: 'x'"),
    ],
)
async def test_a_live_check_tells_what_is_wrong_as_its_answer(
    parts: LifeParts, recorded: Recorded, probe: Exception, said: str
) -> None:
    fake = Fake(probes=[probe])
    async with living(fake, parts) as life:
        assert not (await life.validate()).ok
        await recorded.until(ConnectorState.READY)
        assert await life.validate() == Probe(ok=False, summary=said)
        assert (await life.validate()).ok


async def test_neighbours_that_break_are_not_told_and_harm_nobody(
    parts: LifeParts, recorded: Recorded
) -> None:
    fake = Fake(talks=[KeyError("x"), ConnectorAuthFailedError("bad token")])

    async def ask(connector: Connector) -> Neighbours:
        return await connector.neighbours(HEARD, 1, 1)

    async with living(fake, parts) as life:
        await recorded.until(ConnectorState.READY)
        with pytest.raises(ConnectorNotReadyError, match="KeyError"):
            await life.asked("neighbours", ask)
        assert life.standing.state is ConnectorState.READY
        with pytest.raises(ConnectorNotReadyError):
            await life.asked("neighbours", ask)
        await recorded.until(ConnectorState.NEEDS_AUTH)


async def test_an_agenda_that_breaks_is_not_told_and_harms_nobody(
    parts: LifeParts, recorded: Recorded
) -> None:
    at, fake = FixedClock().now(), Fake(talks=[KeyError("x")])

    async def ask(connector: Connector) -> Sequence[Appointment]:
        return await connector.agenda(at, at)

    async with living(fake, parts) as life:
        await recorded.until(ConnectorState.READY)
        with pytest.raises(ConnectorNotReadyError, match="KeyError"):
            await life.asked("agenda", ask)
        assert [one.since for one in await life.asked("agenda", ask)] == [at]
        assert life.standing.state is ConnectorState.READY
