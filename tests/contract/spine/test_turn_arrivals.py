"""Turns over a real store: a trigger comes at each of their commits, and is told once (B8.4)."""

from __future__ import annotations

import asyncio

import pytest

from fixtures.agents import Agents, Say, ScriptedChat
from fixtures.red_to_green import COMMITS, RED_TO_GREEN, check, play
from fixtures.still_hub import ANN, StillHub, trigger
from upright.core.trigger import Disposition
from upright.core.work import WorkState
from upright.engine.ports import ChatRequest
from upright.store.tables import TRIGGER, WORK


def until_green(request: ChatRequest) -> Say:
    """Wait for the build, and complete when it is green."""
    is_green = any("kind=ci.passed" in message.text for message in request.messages)
    return RED_TO_GREEN[5] if is_green else RED_TO_GREEN[4]


@pytest.mark.clause("B8.4", "B6.4", "B11.5")
@pytest.mark.parametrize("dies", [False, True], ids=["alive", "killed"])
@pytest.mark.parametrize("comes_at", range(COMMITS))
@pytest.mark.case("HO/1976", "TE/4137")
async def test_a_trigger_that_comes_at_any_commit_is_told_exactly_once(
    hub: StillHub, comes_at: int, *, dies: bool
) -> None:
    chat = ScriptedChat(worker=(*RED_TO_GREEN[:4], until_green), router=(Say("Noted."),))
    agents = Agents(hub, chat, dies_at=comes_at if dies else None)
    came: list[str] = []

    async def come() -> None:
        came.append((await hub.one(trigger("comment.created", by=ANN, thread="pr:7"))).id)

    async with asyncio.TaskGroup() as group:
        agents.at_commit[comes_at] = lambda: group.create_task(come())
        await play(hub, agents)
    hub.clock.go_on(10.0)  # what was folded is due
    await agents.go()
    (item,) = await hub.rows(WORK)
    assert item["state"] == WorkState.COMPLETED
    told = [*await agents.transcript(item["session_id"])]
    told += await agents.transcript(await hub.router())
    assert len([one for one in told if f"trigger {came[0]} " in one]) <= 1
    heard = await hub.row(TRIGGER, id=came[0])
    is_held = heard["disposition"] == Disposition.HELD
    assert is_held or any(f"trigger {came[0]} " in one for one in told)
    assert agents.deaths == dies
    await check(hub, agents, item["session_id"])
