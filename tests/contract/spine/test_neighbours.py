"""Neighbours: what was said around a trigger, told by its service, else by our own store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fixtures.agents import Agents, ScriptedChat, call, named
from fixtures.still_hub import ANN, EVE, POLICY, SOURCE, StillHub, trigger
from upright.api import (
    Actor,
    Address,
    Capabilities,
    ConnectorNotReadyError,
    Message,
    Neighbours,
    Trigger,
)
from upright.compose.talk import HubTalk
from upright.core.mandate import Trust
from upright.core.talk import Around
from upright.core.transcript import Role
from upright.core.trigger import People
from upright.engine.ports import Talk, TalkQuestion, untold
from upright.store import conversation, intake
from upright.store.intake import Policy

TRIGGER_ID = named("tr")


def said(
    text: str,
    *,
    native: str,
    by: Actor = ANN,
    thread: str = "pr:7",
    address: Address = Address.NONE,
) -> Trigger:
    return trigger(
        "comment.created",
        by=by,
        thread=thread,
        text=text,
        native=f"k{native}",
        address=address,
        facts=(("native_id", native),),
    )


def changed(what: str, text: str, *, of: str) -> Trigger:
    return trigger(f"comment.{what}", by=ANN, text=text, native=f"{what} {of}", edit_of=of)


async def asked(hub: StillHub, arguments: Mapping[str, Any], talk: Talk = untold) -> dict[str, Any]:
    """Have the router ask for the neighbours of the first trigger that it was given."""
    ask = call("neighbours", lambda r: {"trigger": TRIGGER_ID(r), **arguments})
    agents = Agents(hub, ScriptedChat(router=(ask,)), talk=talk)
    await agents.turns()
    loaded = await agents.loaded(await hub.router())
    (answer,) = [one for one in loaded.messages if one.role is Role.TOOL]
    return {**json.loads(answer.text), "taint": loaded.taint}


@pytest.mark.clause("B7.2", "B7.4")
async def test_without_a_history_the_hub_tells_what_it_stored_of_the_same_thread(
    hub: StillHub,
) -> None:
    for number in range(3):
        await hub.one(said(f"before {number}", native=f"b{number}"))
    await hub.one(said("elsewhere", native="e", thread="pr:8"))
    await hub.one(said("look", native="m", address=Address.MENTION))
    await hub.one(said("behind", native="a", by=EVE))
    told = await asked(hub, {"before": 2, "after": 2})
    assert [one["text"] for one in told["before"]] == ["before 1", "before 2"]
    assert [one["text"] for one in told["after"]] == ["behind"]
    assert (told["told_by"], told["whole"], told["role"]) == ("hub", False, "material")


@pytest.mark.clause("B14.1")
async def test_what_a_stranger_said_beside_it_taints_who_reads_it(hub: StillHub) -> None:
    await hub.one(said("do as I say", native="e", by=EVE))
    await hub.one(said("look", native="m", address=Address.MENTION))
    told = await asked(hub, {})
    assert (told["trust"], told["taint"]) == ("stranger", Trust.STRANGER)


async def test_with_members_alone_around_it_nobody_is_tainted_anew(hub: StillHub) -> None:
    await hub.one(said("before", native="b"))
    await hub.one(said("look", native="m", address=Address.MENTION))
    assert (await asked(hub, {}))["taint"] is Trust.MEMBER


@pytest.mark.clause("B1.4")
async def test_an_edited_neighbour_is_shown_as_it_is_now_and_a_deleted_one_is_not(
    hub: StillHub,
) -> None:
    await hub.one(said("Plaese", native="1"))
    await hub.one(said("a slip", native="2"))
    await hub.one(changed("edited", "Please", of="1"))
    await hub.one(changed("deleted", "", of="2"))
    mention = await hub.one(said("look", native="m", address=Address.MENTION))
    stored = await hub.see(lambda c: intake.read(c, mention.id))
    assert stored is not None
    around = await hub.see(lambda c: conversation.around(c, stored, 5, 5))
    assert [one.message.text for one in around.before] == ["Please"]


async def test_a_trigger_of_others_is_refused_and_nobody_is_asked(hub: StillHub) -> None:
    foreign = await hub.one(trigger("comment.created", by=ANN, thread="pr:8"))
    await hub.one(said("look", native="m", address=Address.MENTION))
    service = Service()
    told = await asked(hub, {"trigger": foreign.id}, talk=service)
    assert foreign.id in told["error"]
    assert service.asked == []


@pytest.mark.parametrize("wrong", [{"before": 21}, {"after": -1}, {"around": 3}])
async def test_what_does_not_fit_is_told_to_the_model(hub: StillHub, wrong: dict[str, int]) -> None:
    await hub.one(said("look", native="m", address=Address.MENTION))
    assert "don't fit" in (await asked(hub, wrong))["error"]


# ------------------------------------------------------------------ by the service
class Service:
    """A source with a history, which answers or does not."""

    def __init__(self, *, fails: bool = False, neighbours: bool = True) -> None:
        self.fails = fails
        self.able = neighbours
        self.asked: list[tuple[str, int, int]] = []

    def capabilities(self, source: str) -> Capabilities | None:
        return Capabilities(neighbours=self.able) if source == SOURCE else None

    async def neighbours(
        self, source: str, trigger: Trigger, before: int, after: int
    ) -> Neighbours:
        self.asked.append((source, before, after))
        if self.fails:
            raise ConnectorNotReadyError("it is away")
        messages = tuple(Message(id=str(n), author=ANN, text=f"word {n}") for n in range(9))
        return Neighbours(before=messages[:4], after=messages[5:], whole=True)

    async def __call__(self, question: TalkQuestion) -> Around | None:
        async def policy() -> Policy:
            return replace(POLICY, people=People())

        talk = HubTalk(connectors=self, policy=policy)
        return await talk(question)


async def test_a_service_with_a_history_is_asked_and_held_to_what_was_asked(hub: StillHub) -> None:
    await hub.one(said("look", native="m", address=Address.MENTION))
    service = Service()
    told = await asked(hub, {"before": 2, "after": 1}, talk=service)
    assert service.asked == [(SOURCE, 2, 1)]
    assert [one["text"] for one in told["before"]] == ["word 2", "word 3"]
    assert [one["text"] for one in told["after"]] == ["word 5"]
    assert (told["told_by"], told["whole"], told["taint"]) == ("service", True, Trust.STRANGER)


@pytest.mark.parametrize("service", [Service(fails=True), Service(neighbours=False)])
async def test_where_the_service_cannot_tell_the_hub_does(hub: StillHub, service: Service) -> None:
    await hub.one(said("before", native="b"))
    await hub.one(said("look", native="m", address=Address.MENTION))
    told = await asked(hub, {}, talk=service)
    assert (told["told_by"], [one["text"] for one in told["before"]]) == ("hub", ["before"])
