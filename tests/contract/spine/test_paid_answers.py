"""An answer of the model was paid for: a store that is away for a moment loses neither it nor its
place in the ledger, and one that stays away costs a loud word (B16.1).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

import pytest

from fixtures.agents import WAIT_CI, Say, ScriptedChat, worker
from fixtures.away import Away, How, away
from fixtures.metered import Standing
from fixtures.still_hub import StillHub
from upright.agent.keeping import BACKOFF
from upright.core.budget import Caps
from upright.core.transcript import Message, Role
from upright.core.work import WorkState
from upright.engine.embedded import recover
from upright.engine.ports import ChatRequest, ModelUnavailableError
from upright.llm.abilities import STREAMING
from upright.llm.meter import Meter
from upright.llm.roles import Roles
from upright.store.errors import StoreUnavailableError
from upright.store.tables import ENDPOINT, LEDGER

LOST = "model.answer_lost"
ASKED = Message(role=Role.USER, text="What is it?")
pytestmark = pytest.mark.clause("B16.1")


def failing(store: Away, fails: int, how: How = How.NOTHING) -> Callable[[], Awaitable[None]]:
    """Return what takes the store away while the model thinks."""

    async def go() -> None:
        store.fails, store.how = fails, how

    return go


def heard(_chars: int) -> None:
    """Cut nothing short."""


def said(caplog: pytest.LogCaptureFixture, event: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.message == event]


@pytest.mark.parametrize("fails", [1, BACKOFF.max_tries - 1])
async def test_an_answer_outlives_a_store_that_is_away_for_a_moment(
    hub: StillHub, fails: int, caplog: pytest.LogCaptureFixture
) -> None:
    agents, item = await worker(hub, WAIT_CI)
    agents.chat.meanwhile[0] = failing(away(hub), fails)
    await agents.go()
    assert len(agents.chat.requests) == 1  # it was not asked again
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL
    assert len(await hub.rows(LEDGER)) == 1
    assert not said(caplog, LOST)


async def test_an_answer_that_was_stored_unheard_is_stored_once(hub: StillHub) -> None:
    agents, item = await worker(hub, WAIT_CI)
    agents.chat.meanwhile[0] = failing(away(hub), 1, How.UNHEARD)
    with pytest.raises(StoreUnavailableError, match="nobody heard"):
        await agents.turns()
    await hub.do(recover)
    await agents.turns()
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL
    assert len(agents.chat.requests) == 1
    assert len(await hub.rows(LEDGER)) == 1


async def test_an_answer_that_can_not_be_stored_is_in_the_log_with_its_cost(
    hub: StillHub, caplog: pytest.LogCaptureFixture
) -> None:
    agents, item = await worker(hub, WAIT_CI)
    agents.chat.meanwhile[0] = failing(away(hub), BACKOFF.max_tries)
    with pytest.raises(StoreUnavailableError, match="away"):
        await agents.turns()
    (record,) = said(caplog, LOST)
    told = vars(record)
    assert (told["session"], told["model"], told["tokens_input"], told["tokens_output"]) == (
        item.session,
        "scripted",
        10,
        1,
    )


@pytest.mark.clause("B16.3")
@pytest.mark.parametrize("fails", [False, True], ids=["answers", "fails"])
async def test_neither_an_answer_nor_a_failure_waits_for_what_it_has_shown_to_be_stored(
    hub: StillHub, caplog: pytest.LogCaptureFixture, *, fails: bool
) -> None:
    standing = Standing(ScriptedChat(router=(Say("Noted."),)))
    store = away(hub)
    meter = Meter(Roles(standing, {}), hub.units, Caps())
    request = ChatRequest(role="router", session="se_1", messages=(ASKED,), tools=())

    async def learn() -> None:
        standing.abilities.learn(STREAMING, has=False)
        store.fails = 1
        if fails:
            raise ModelUnavailableError("cut")

    assert isinstance(standing.chat, ScriptedChat)
    standing.chat.meanwhile[0] = learn
    with pytest.raises(ModelUnavailableError) if fails else nullcontext():
        await meter.complete(request, heard)
    assert len(said(caplog, "model.not_learned")) == 1
    assert await hub.rows(ENDPOINT) == []
    await meter.complete(request, heard)
    assert (await hub.row(ENDPOINT))["probe"] == {STREAMING: False}
