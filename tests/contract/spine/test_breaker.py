"""The breaker of a model's endpoint: a refused key or bill opens it, a person closes it (B16.3)."""

from __future__ import annotations

from collections import deque

import pytest

from fixtures.agents import TEST, WAIT_CI, Agents, Say, ScriptedChat
from fixtures.metered import SETTINGS, metered, metered_agents, metered_worker
from fixtures.still_hub import StillHub, trigger
from upright.core.budget import Key, Measure, Scope
from upright.core.wait import OnDeadline
from upright.core.work import WorkState
from upright.engine.ports import ModelAuthError, ModelError, ModelRequestError, ModelToolsError
from upright.store import budgets, deadlines, endpoints, people
from upright.store.tables import ENDPOINT, EVENT, REQUEST, WAIT

REFUSED = ModelAuthError("HTTP 401: no such key")


@pytest.mark.clause("B16.3")
@pytest.mark.parametrize(
    "error",
    [REFUSED, ModelAuthError("HTTP 402: no money left"), ModelToolsError("tools not supported")],
    ids=["key", "bill", "tools"],
)
async def test_a_refused_key_or_bill_stops_every_call_and_asks_once(
    hub: StillHub, error: ModelError
) -> None:
    agents, item = await metered_worker(hub, WAIT_CI)
    agents.chat.fails = deque([error])
    agents.chat.router = (Say("Noted."),)
    await agents.go()
    await hub.one(trigger(thread="pr:9"))
    await agents.go()
    assert len(agents.chat.requests) == 1  # the router's was not made
    assert (await hub.item(item)).state is WorkState.WAITING_SYSTEM
    (question,) = await hub.rows(REQUEST)
    assert str(error) in question["prompt"]
    assert "upright model retry" in question["prompt"]
    assert len(await hub.rows(EVENT, stop="model.held")) == 1
    assert (await hub.row(WAIT))["on_deadline"] == OnDeadline.ASK.value


@pytest.mark.clause("B16.3")
async def test_an_open_breaker_survives_a_restart_and_hours_of_waiting(hub: StillHub) -> None:
    agents, _ = await metered_worker(hub, WAIT_CI)
    agents.chat.fails = deque([REFUSED])
    await agents.go()
    await hub.reopen()
    again = Agents(hub, ScriptedChat(router=(Say("Noted."),), worker=(WAIT_CI,)))
    again.model = metered(hub, again.chat)
    hub.clock.go_on(12 * 3600)
    await hub.one(trigger(thread="pr:9"))
    await again.go()
    assert again.chat.requests == []


@pytest.mark.clause("B16.3")
@pytest.mark.parametrize("how", ["retry", "answer"])
async def test_a_person_closes_it_and_everybody_goes_on(hub: StillHub, how: str) -> None:
    agents, item = await metered_worker(hub, WAIT_CI)
    agents.chat.fails = deque([REFUSED])
    agents.chat.router = (Say("Noted."),)
    await agents.go()
    await hub.one(trigger(thread="pr:9"))
    await agents.go()
    (question,) = await hub.rows(REQUEST)
    if how == "retry":
        await hub.do(lambda u: endpoints.retry_all(u, "ann"))
    else:
        await hub.do(lambda u: people.answer(u, question["id"], "yes", "ann"))
    await agents.go()
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL
    assert [request.role for request in agents.chat.requests[1:]].count("router") == 1
    assert await hub.rows(REQUEST, state="asked") == []
    assert (await hub.row(ENDPOINT))["held_at_ms"] is None


@pytest.mark.clause("B16.3")
async def test_a_key_that_is_still_wrong_opens_it_again(hub: StillHub) -> None:
    agents, item = await metered_worker(hub, WAIT_CI)
    agents.chat.fails = deque([REFUSED, REFUSED])
    await agents.go()
    await hub.do(lambda u: endpoints.retry_all(u, "ann"))
    await agents.go()
    assert len(agents.chat.requests) == 2
    assert (await hub.item(item)).state is WorkState.WAITING_SYSTEM
    assert len(await hub.rows(REQUEST, state="asked")) == 1


@pytest.mark.clause("B17.5")
async def test_a_probe_that_found_no_tools_holds_work_before_any_call(hub: StillHub) -> None:
    agents, item = await metered_worker(hub, WAIT_CI)
    await hub.do(lambda u: endpoints.learned(u, SETTINGS.id, SETTINGS.base_url, {"tools": False}))
    await agents.go()
    assert agents.chat.requests == []
    assert "held for you" in (await hub.row(REQUEST))["prompt"]
    assert (await hub.item(item)).state is WorkState.WAITING_SYSTEM


# ------------------------------------------------------------------ nobody answers
async def much_later(hub: StillHub) -> None:
    hub.clock.go_on(91 * 24 * 3600)
    await hub.do(deadlines.fire_due)


@pytest.mark.clause("B11.8", "B16.3")
async def test_a_breaker_that_nobody_closes_is_asked_about_again(hub: StillHub) -> None:
    await hub.one(trigger(thread="pr:9"))
    agents = metered_agents(hub, ScriptedChat(router=(Say("Noted."),), fails=deque([REFUSED])))
    await agents.go()
    await much_later(hub)
    first, second = await hub.rows(REQUEST)
    assert (first["state"], second["state"]) == ("expired", "asked")
    assert first["prompt"] == second["prompt"]
    await hub.do(lambda u: people.answer(u, second["id"], "yes", "ann"))
    await agents.go()
    assert len(agents.chat.requests) == 2


@pytest.mark.clause("B11.8")
async def test_what_the_router_can_not_go_on_without_is_asked_again(hub: StillHub) -> None:
    await hub.one(trigger(thread="pr:9"))
    chat = ScriptedChat(router=(Say("Noted."),), fails=deque([ModelRequestError("no such model")]))
    agents = Agents(hub, chat)
    await agents.go()
    await much_later(hub)
    assert [row["state"] for row in await hub.rows(REQUEST)] == ["expired", "asked"]
    (_, second) = await hub.rows(REQUEST)
    await hub.do(lambda u: people.answer(u, second["id"], "try again", "ann"))
    await agents.go()
    assert len(chat.requests) == 2


@pytest.mark.clause("B16.2")
async def test_a_budget_that_has_renewed_itself_is_not_asked_about_again(hub: StillHub) -> None:
    agents, _ = await metered_worker(hub, TEST, WAIT_CI)
    await hub.do(lambda u: budgets.put(u, Key(Scope.DAY), {Measure.TOKENS: 11}, "ann"))
    await agents.go()
    assert [row["state"] for row in await hub.rows(REQUEST)] == ["asked"]
    hub.clock.go_on(24 * 3600)
    await hub.do(deadlines.fire_due)
    assert [row["state"] for row in await hub.rows(REQUEST)] == ["expired"]
