"""The sender over a real outbox: whatever a connector says becomes one honest state (B15)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from fixtures.still_hub import PULL, StillHub
from upright.api import (
    ConnectorAuthFailedError,
    ConnectorNotReadyError,
    Destination,
    Effect,
    EffectClass,
    PermanentSendError,
    Receipt,
    RetryableSendError,
    UnknownSendError,
)
from upright.core.backoff import Backoff
from upright.core.work import WorkItem
from upright.engine.embedded import recover
from upright.outward.sender import Sender, SenderLimits, SenderParts
from upright.store import outbox
from upright.store.tables import OUTBOX

LIMITS = SenderLimits(
    sweep_s=30.0, send_s=20.0, backoff=Backoff(base_s=10.0, cap_s=100.0, max_tries=3)
)


ELSEWHERE = replace(PULL, address=(("number", "8"),))


@dataclass
class Post:
    """A provider: does with each effect what is next on its list, and keeps what it delivered."""

    answers: list[Exception | None] = field(default_factory=list)
    seen: list[Effect] = field(default_factory=list)
    hangs: asyncio.Event | None = None

    async def send(self, effect: Effect) -> Receipt:
        self.seen.append(effect)
        if self.hangs is not None:
            self.hangs.set()
            await asyncio.Event().wait()
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        return Receipt(provider_id=f"c-{len(self.seen)}")


@asynccontextmanager
async def sending(
    hub: StillHub, post: Post, limits: SenderLimits = LIMITS
) -> AsyncIterator[Sender]:
    """Run a sender."""
    parts = SenderParts(
        units=hub.units, send=post.send, woken=hub.wake, roll=lambda: 0.5, limits=limits
    )
    sender = Sender(parts)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sender.run())
        try:
            yield sender
        finally:
            task.cancel()


async def effects(hub: StillHub, *keys: str) -> WorkItem:
    """Let a sleeping worker have effects in the outbox."""
    item = await hub.opened()
    await hub.asleep(item)
    for key in keys:
        await put(hub, item, key)
    return item


async def put(hub: StillHub, item: WorkItem, key: str, *, to: Destination = PULL) -> None:
    draft = outbox.Draft(
        session=item.session,
        work=item.id,
        trigger=item.trigger,
        effect_class=EffectClass.REPLY,
        destination=to,
        text=f"Fixed {key}.",
        idempotency_key=key,
    )
    await hub.do(lambda u: outbox.put(u, draft))


async def states(hub: StillHub) -> list[str]:
    return [row["state"] for row in await hub.rows(OUTBOX)]


async def settled(hub: StillHub, *wanted: str) -> None:
    """Wait until the effects are in these states."""

    async def look() -> bool:
        return await states(hub) == list(wanted)

    await hub.until(look)


@pytest.mark.clause("B15.1", "B15.2")
@pytest.mark.feature("common.outbox")
async def test_what_is_due_is_sent_once_in_order_with_its_own_destination(hub: StillHub) -> None:
    await effects(hub, "a", "b")
    post = Post()
    async with sending(hub, post):
        await settled(hub, "sent", "sent")
    assert [(e.idempotency_key, e.text, e.tries) for e in post.seen] == [
        ("a", "Fixed a.", 0),
        ("b", "Fixed b.", 0),
    ]
    assert {e.destination for e in post.seen} == {PULL}
    assert hub.hinted == []


async def test_a_hint_ends_the_senders_pause(hub: StillHub) -> None:
    item = await effects(hub)
    post = Post()
    async with sending(hub, post) as sender:
        await put(hub, item, "a")
        sender.hint()
        await settled(hub, "sent")


@pytest.mark.clause("B15.2", "B15.3")
@pytest.mark.parametrize(
    ("error", "wait_s"),
    [
        (RetryableSendError("busy"), 5.0),
        (RetryableSendError("busy", after_s=40.0), 40.0),
        (ConnectorNotReadyError("loading"), 5.0),
        (ConnectorNotReadyError("loading", retry_after_s=30.0), 30.0),
        (ConnectorAuthFailedError("key"), 5.0),
    ],
    ids=["retryable", "after", "not-ready", "retry-after", "auth"],
)
async def test_what_did_not_go_out_is_sent_again_after_its_time(
    hub: StillHub, error: Exception, wait_s: float
) -> None:
    await effects(hub, "a")
    post = Post(answers=[error])
    async with sending(hub, post) as sender:
        await tried(hub, 1)
        hub.clock.go_on(wait_s - 0.001)
        sender.hint()
        item = await hub.opened()
        await hub.asleep(item)
        await put(hub, item, "b", to=ELSEWHERE)
        sender.hint()
        await settled(hub, "pending", "sent")
        hub.clock.go_on(0.001)
        sender.hint()
        await settled(hub, "sent", "sent")
    assert [(e.idempotency_key, e.tries) for e in post.seen] == [("a", 0), ("b", 0), ("a", 1)]


@pytest.mark.clause("B15.2", "B15.3")
@pytest.mark.parametrize(
    ("error", "state"),
    [(PermanentSendError("404"), "dead"), (UnknownSendError("cut off"), "unknown")],
)
@pytest.mark.case("AI/209")
async def test_a_final_failure_is_told_and_blocks_nothing_behind_it(
    hub: StillHub, error: Exception, state: str
) -> None:
    item = await effects(hub, "a", "b")
    post = Post(answers=[error])
    async with sending(hub, post):
        await settled(hub, state, "sent")
    assert hub.hinted == [item.session]
    assert (await hub.rows(OUTBOX))[0]["reason"] == str(error)
    assert len(post.seen) == 2


@pytest.mark.clause("B15.3")
@pytest.mark.case("HO/2486")
async def test_a_poisoned_effect_is_dead_after_its_tries(hub: StillHub) -> None:
    item = await effects(hub, "a")
    post = Post(answers=[RetryableSendError("busy") for _ in range(9)])
    async with sending(hub, post) as sender:
        for tries in (1, 2):
            await tried(hub, tries)
            hub.clock.go_on(100)
            sender.hint()
        await settled(hub, "dead")
    assert [e.tries for e in post.seen] == [0, 1, 2]
    assert hub.hinted == [item.session]


async def tried(hub: StillHub, tries: int) -> None:
    """Wait until an effect rests after so many tries."""

    async def look() -> bool:
        row = await hub.row(OUTBOX)
        return (row["state"], row["tries"]) == ("pending", tries)

    await hub.until(look)


@pytest.mark.clause("B15.2", "B8.6")
async def test_a_sender_that_dies_in_the_middle_makes_the_next_one_look_first(
    hub: StillHub,
) -> None:
    await effects(hub, "a")
    dying = Post(hangs=asyncio.Event())
    assert dying.hangs is not None
    async with sending(hub, dying):
        async with asyncio.timeout(10):
            await dying.hangs.wait()
    assert await states(hub) == ["sending"]
    await hub.reopen()
    await hub.do(recover)
    post = Post()
    async with sending(hub, post):
        await settled(hub, "sent")
    assert [e.tries for e in post.seen] == [1]
    assert dying.seen[0].idempotency_key == post.seen[0].idempotency_key


@pytest.mark.clause("B15.2", "B11.8")
async def test_a_sender_that_is_started_again_takes_up_what_it_left(hub: StillHub) -> None:
    await effects(hub, "a")
    broken = Post(answers=[LookupError("a connector's fault")])
    with pytest.raises(ExceptionGroup):
        async with sending(hub, broken):
            await settled(hub, "never")
    assert await states(hub) == ["sending"]
    post = Post()
    async with sending(hub, post):
        await settled(hub, "sent")
    assert [e.tries for e in post.seen] == [1]


@pytest.mark.clause("B15.2")
async def test_a_provider_that_never_answers_leaves_an_unknown_and_holds_up_nobody(
    hub: StillHub,
) -> None:
    item = await effects(hub, "a")
    post = Post(hangs=asyncio.Event())
    async with sending(hub, post, SenderLimits(send_s=0.01)):
        await settled(hub, "unknown")
        post.hangs = None
        await put(hub, item, "b")
    async with sending(hub, post):
        await settled(hub, "unknown", "sent")
    assert hub.hinted == [item.session]


@pytest.mark.clause("B15.3")
async def test_a_hung_destination_holds_up_no_other(hub: StillHub) -> None:
    item = await effects(hub, "a", "b")
    hung = asyncio.Event()

    async def send(effect: Effect) -> Receipt:
        if effect.destination == PULL:
            hung.set()
            await asyncio.Event().wait()
        return Receipt(provider_id="c-1")

    parts = SenderParts(units=hub.units, send=send, woken=hub.wake, roll=lambda: 0.5, limits=LIMITS)
    sender = Sender(parts)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sender.run())
        async with asyncio.timeout(10):
            await hung.wait()
        await put(hub, item, "c", to=ELSEWHERE)
        sender.hint()
        await settled(hub, "sending", "pending", "sent")
        task.cancel()


@pytest.mark.clause("B15.2")
@pytest.mark.case("OC/6917")
async def test_a_send_before_the_connector_is_ready_waits_and_goes_out_once_in_order(
    hub: StillHub,
) -> None:
    """OC/6917: a reply was dropped while its channel warmed up."""
    await effects(hub, "a", "b", "c")
    post = Post(answers=[ConnectorNotReadyError("loading") for _ in range(6)])
    async with sending(hub, post) as sender:
        for tries in range(1, 7):
            await first_tried(hub, tries)
            hub.clock.go_on(60)
            sender.hint()
        await settled(hub, "sent", "sent", "sent")
    keys = [effect.idempotency_key for effect in post.seen]
    assert keys == ["a"] * 7 + ["b", "c"]


async def first_tried(hub: StillHub, tries: int) -> None:
    """Wait until the oldest effect rests after so many tries."""

    async def look() -> bool:
        row = (await hub.rows(OUTBOX))[0]
        return (row["state"], row["tries"]) == ("pending", tries)

    await hub.until(look)
