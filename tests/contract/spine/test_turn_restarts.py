"""Turns over a real store, killed after each of their commits: the same story, told once (B8)."""

from __future__ import annotations

import pytest

from fixtures.agents import Agents, KilledError, Say, ScriptedChat, call, named
from fixtures.red_to_green import COMMITS, RED_TO_GREEN, Story, check, play
from fixtures.still_hub import StillHub, trigger
from upright.core.work import WorkState
from upright.engine.embedded import recover
from upright.engine.ports import Lease
from upright.store.errors import LeaseLostError
from upright.store.tables import JOB, LEDGER, SESSION, WORK


@pytest.mark.clause("B8.1", "B8.2")
@pytest.mark.case("HO/3166")
async def test_a_red_build_is_mended_and_every_prompt_begins_with_the_one_before(
    hub: StillHub,
) -> None:
    agents = Agents(hub, ScriptedChat(worker=RED_TO_GREEN))
    told = await play(hub, agents)
    assert (told.effects, told.jobs, told.ran) == (1, 3, 3)
    assert told.state is WorkState.COMPLETED
    item = await hub.row(WORK)
    await check(hub, agents, item["session_id"])
    assert len(await hub.rows(LEDGER, kind="model")) == len(RED_TO_GREEN) == len(agents.prompts())
    assert agents.commits == COMMITS
    assert agents.outward == 1
    assert (await hub.row(SESSION, id=item["session_id"]))["ended_at_ms"] is not None


@pytest.mark.clause("B8.1", "B8.2", "B8.6", "B15.1")
@pytest.mark.parametrize("dies_at", range(COMMITS))
@pytest.mark.case("OC/71127")
async def test_a_worker_that_is_killed_after_any_commit_tells_the_same_story(
    hub: StillHub, wanted: Story, dies_at: int
) -> None:
    agents = Agents(hub, ScriptedChat(worker=RED_TO_GREEN), dies_at=dies_at)
    assert await play(hub, agents) == wanted
    await check(hub, agents, (await hub.row(WORK))["session_id"])
    assert agents.deaths == 1


@pytest.mark.clause("B8.6")
@pytest.mark.parametrize("step", range(len(RED_TO_GREEN)))
async def test_a_turn_that_is_cancelled_while_the_model_thinks_is_taken_up_again(
    hub: StillHub, wanted: Story, step: int
) -> None:
    chat = ScriptedChat(worker=RED_TO_GREEN)
    agents = Agents(hub, chat)

    async def die() -> None:
        raise KilledError

    chat.meanwhile[step] = die
    assert await play(hub, agents) == wanted
    assert len(chat.requests) == len(RED_TO_GREEN) + 1
    assert agents.prompts()[step] == agents.prompts()[step + 1]


@pytest.mark.clause("B8.5")
async def test_a_turn_that_lost_its_lease_writes_nothing_more(hub: StillHub) -> None:
    chat = ScriptedChat(worker=RED_TO_GREEN)
    agents = Agents(hub, chat)
    await hub.device()
    item = await hub.opened()
    before: list[str] = []

    async def takes_over() -> None:
        await hub.do(recover)
        assert len(await hub.claim()) == 1
        before.extend(await agents.transcript(item.session))

    chat.meanwhile[0] = takes_over
    (claim,) = await hub.claim()
    with pytest.raises(LeaseLostError):
        await agents.runner()(Lease(session=claim.session, epoch=claim.epoch))
    assert await agents.transcript(item.session) == before
    assert await hub.rows(JOB) == await hub.rows(LEDGER) == []


# ------------------------------------------------------------------ the router
SPAWN = (
    call(
        "spawn",
        lambda r: {
            "trigger": named("tr")(r),
            "goal": "make it green",
            "criteria": ["tests pass"],
        },
    ),
    Say("I opened an item."),
)


async def spawned(hub: StillHub, agents: Agents) -> None:
    """Let the router open an item, and its worker ask."""
    await hub.one(trigger())
    await agents.go()
    (item,) = await hub.rows(WORK)
    assert item["state"] == WorkState.WAITING_OPERATOR
    assert len(await hub.rows(SESSION, kind="worker")) == 1
    await check(hub, agents, item["session_id"])
    await check(hub, agents, await hub.router())


@pytest.mark.clause("B5.2")
async def test_the_router_opens_an_item_and_its_worker_begins(hub: StillHub) -> None:
    agents = Agents(hub, ScriptedChat(router=SPAWN, worker=(call("ask", {"question": "How?"}),)))
    await spawned(hub, agents)
    assert agents.commits == ROUTER_COMMITS


ROUTER_COMMITS = 9


@pytest.mark.clause("B5.2", "B8.6")
@pytest.mark.parametrize("dies_at", range(ROUTER_COMMITS))
async def test_a_router_that_is_killed_after_any_commit_opens_one_item(
    hub: StillHub, dies_at: int
) -> None:
    chat = ScriptedChat(router=SPAWN, worker=(call("ask", {"question": "How?"}),))
    agents = Agents(hub, chat, dies_at=dies_at)
    await spawned(hub, agents)
    assert agents.deaths == 1
