"""From Slack and back: an operator is told there what waits, answers there, and hears of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pytest

from fixtures.connector import MemoryContext
from fixtures.held import held
from fixtures.slack import ANN, CAL, DEV, ME, callback, memory, sandbox, started
from fixtures.still_hub import PULL, StillHub
from upright.api import ActorKind, Destination, Effect
from upright.core.terms import DEFAULT_TERMS
from upright.core.trigger import People, Person
from upright.store import intake, notices, outbox, spoken
from upright.store.answering import Answering
from upright.store.arrivals import Arrival
from upright.store.tables import OUTBOX, REQUEST, TRIGGER
from upright_slack.connector import SlackConnector
from upright_slack.sandbox.server import Sandbox

DIGEST: Final = outbox.digest(PULL, "Fixed.")
ROOM: Final = Destination(source="slack", kind="room", address=(("room", DEV),))
ANSWERING: Final = Answering(sources=frozenset({"slack"}), follow=spoken.follow)
OURS: Final = People.of(
    (Person(name="boss", kind=ActorKind.OPERATOR, ids=frozenset({f"slack:{ANN}"})),)
)


@dataclass
class Desk:
    """A hub and a started connector, by HTTP, with a request that waits."""

    hub: StillHub
    at: Sandbox
    connector: SlackConnector
    request: str

    async def hears(self, event: dict[str, Any]) -> None:
        """Let an event come as Slack delivers it."""
        triggers = await self.connector.receive(callback(self.at, event))
        await self.hub.do(lambda u: intake.accept(u, "slack", triggers, self.hub.policy))

    async def sends(self) -> None:
        """Send what is due to Slack."""
        for stored in (await self.hub.do(lambda u: outbox.claim_due(u, 9))).taken:
            if stored.destination.source != "slack":
                continue
            effect = Effect(
                id=stored.id,
                destination=stored.destination,
                text=stored.text,
                idempotency_key=stored.idempotency_key,
            )
            receipt = await self.connector.send(effect)
            sent = partial(outbox.delivered, stored=stored, receipt=receipt, seconds=0.1)
            await self.hub.do(sent)

    def ours(self) -> list[dict[str, Any]]:
        """Return what we said in the channel, oldest first."""
        messages = self.at.world.channel(DEV).messages.values()
        return [one for one in messages if one["user"] == ME]

    async def state(self) -> str:
        return str((await self.hub.row(REQUEST, id=self.request))["state"])


@asynccontextmanager
async def desk(hub: StillHub) -> AsyncIterator[Desk]:
    """Let a request wait, of which boss is told in the channel."""
    boss = frozenset({"boss"})
    hub.terms = replace(DEFAULT_TERMS, operators=boss, notify={"boss": ROOM})
    hub.policy = replace(hub.policy, people=OURS, answering=ANSWERING)
    context: MemoryContext = memory()
    async with sandbox(context) as at, started(at, context, http=True) as connector:
        _, request = await held(hub)
        await hub.do(notices.tell)
        made = Desk(hub=hub, at=at, connector=connector, request=request)
        await made.sends()
        yield made


@pytest.mark.clause("B14.3", "B14.4")
@pytest.mark.feature("chat.answers")
async def test_told_in_slack_an_operator_answers_there_with_the_line_that_they_were_shown(
    hub: StillHub,
) -> None:
    async with desk(hub) as it:
        (notice,) = it.ours()
        line = f"approve {it.request} {DIGEST[:10]}"
        assert f"```\n{line}\n```" in notice["text"]
        assert "```\nFixed.\n```" in notice["text"]
        said = it.at.world.post(DEV, ANN, f"<@{ME}> {line}", thread_ts=notice["ts"])
        for _ in range(3):
            await it.hears(said)
        assert await it.state() == "answered"
        await it.sends()
        _, reply = it.ours()
        assert (reply["text"], reply["thread_ts"]) == (f"Approved: {it.request}", notice["ts"])
        (answer,) = [one for one in await hub.rows(TRIGGER) if one["disposition"] == "answered"]
        assert "an answer by boss in chat" in answer["reason"]
        effects = {one["text"]: one["state"] for one in await hub.rows(OUTBOX)}
        assert effects["Fixed."] == "sending"


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    ("user", "text", "more"),
    [
        pytest.param(CAL, "{}", {}, id="a stranger"),
        pytest.param(ANN, "&gt; {}", {}, id="quoted as Slack writes it"),
        pytest.param(ANN, "{}", {"attachments": [{"is_share": True}]}, id="forwarded"),
        pytest.param(ANN, "<@U0OTHER001> {}", {}, id="to somebody else"),
    ],
)
async def test_what_nobody_has_typed_just_so_is_text(
    hub: StillHub, user: str, text: str, more: dict[str, Any]
) -> None:
    async with desk(hub) as it:
        line = text.format(f"approve {it.request} {DIGEST}")
        await it.hears(it.at.world.post(DEV, user, line, **more))
        assert await it.state() == "asked"
        await it.sends()
        assert len(it.ours()) == 1


@pytest.mark.clause("B14.3", "B1.4")
async def test_an_edit_into_the_form_is_text(hub: StillHub) -> None:
    async with desk(hub) as it:
        said = it.at.world.post(DEV, ANN, "wait")
        await it.hears(said)
        await it.hears(it.at.world.edit(DEV, said["ts"], f"approve {it.request} {DIGEST}"))
        assert await it.state() == "asked"


@pytest.mark.clause("B14.3")
async def test_by_a_listing_the_form_answers_nothing(hub: StillHub) -> None:
    async with desk(hub) as it:
        it.at.world.post(DEV, ANN, f"approve {it.request} {DIGEST}")
        now = hub.clock.now()
        since = now.replace(year=now.year - 1).isoformat()
        listed = [one async for one in it.connector.backfill(since, now.replace(year=2100))]
        assert [one.content.typed for one in listed if one.actor.id == ANN]
        arrival = Arrival(source="slack", triggers=listed, cursor="c", listed=True)
        await hub.do(lambda u: intake.accept_all(u, [arrival], hub.policy))
        assert await it.state() == "asked"
