"""Secrets by name: a worker sends a name, and only where everything it has read is trusted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.agents import WAIT_CI, Agents, ScriptedChat, call
from fixtures.still_hub import ANN, CAL, CODE, EVE, StillHub, trigger
from upright.api import Actor
from upright.store.tables import JOB

PUSH = call("run", {"argv": ["git", "push"], "secrets": {"FORGE_TOKEN": "forge"}})
CAPS = ("exec", *(f"confinement.{one}" for one in ("none", "workspace", "workspace_no_network")))


@pytest.mark.clause("E4.1")
async def test_a_command_names_the_secret_that_the_device_gives_it(hub: StillHub) -> None:
    await hub.device(caps=CAPS)
    await hub.opened(trigger(by=ANN))
    await Agents(hub, ScriptedChat(worker=(PUSH, WAIT_CI))).go()
    assert (await hub.row(JOB))["spec"]["secrets"] == [["FORGE_TOKEN", "forge"]]


@pytest.mark.clause("B14.2", "B14.6")
@pytest.mark.parametrize(("by", "fork"), [(EVE, False), (CAL, False), (ANN, True)])
async def test_who_has_read_what_is_not_trusted_gets_none(
    hub: StillHub, by: Actor, *, fork: bool
) -> None:
    await hub.device(caps=CAPS)
    item = await hub.opened(trigger(by=by, code=replace(CODE, fork=fork)))
    agents = Agents(hub, ScriptedChat(worker=(PUSH, WAIT_CI)))
    await agents.go()
    assert "secrets" in (await agents.told(item.session))[0]["error"]
    assert await hub.rows(JOB) == []
