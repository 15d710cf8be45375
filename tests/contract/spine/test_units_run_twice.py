"""Units are functions of their connection: one that ran and was taken back may run again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import pytest

from fixtures.agents import Agents, Say, ScriptedChat, call, complete, named
from fixtures.databases import opened
from fixtures.still_hub import StillHub, trigger, without_ids
from upright.core import transcript
from upright.core.transcript import Role
from upright.core.work import WorkState
from upright.store.address import Address
from upright.store.storage import Storage, Time
from upright.store.tables import JOB, LEDGER, OUTBOX
from upright.store.unit import Connection

T = TypeVar("T")
STORY = (
    Say("I look.", (("plan", {"steps": [{"text": "fix"}]}), ("run", {"argv": ["make"]}))),
    Say("I think."),  # neither waits nor is done: it is nudged
    call("reply", {"text": "Fixed: a typo."}),
    call("wait", {"for": "thread", "why": "CI runs"}),
    complete(tests_pass=named("jb")),
)


class TakenBackError(Exception):
    """The first run is over, and counts for nothing."""


@dataclass
class Twice:
    """A store that runs each unit twice, as PostgreSQL does when another was in the way."""

    inner: Storage

    @property
    def time(self) -> Time:
        return self.inner.time

    async def write(self, unit: Callable[[Connection], T]) -> T:
        def taken_back(c: Connection) -> None:
            unit(c)
            raise TakenBackError

        with pytest.raises(TakenBackError):
            await self.inner.write(taken_back)
        return await self.inner.write(unit)

    async def read(self, query: Callable[[Connection], T]) -> T:
        await self.inner.read(query)
        return await self.inner.read(query)

    async def close(self) -> None:
        await self.inner.close()


async def play(hub: StillHub) -> tuple[list[str], int, int, int]:
    """Let a worker mend a red build; return its transcript, and how much else there is."""
    agents = Agents(hub, ScriptedChat(worker=STORY))
    await hub.device()
    item = await hub.opened()
    await agents.go()
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL
    await hub.one(trigger("ci.passed", native="green", text="All is well."))
    await agents.go()
    assert (await hub.item(item)).state is WorkState.COMPLETED
    messages = (await agents.loaded(item.session)).messages
    transcript.check(messages)
    answered = [message.call_id for message in messages if message.role is Role.TOOL]
    assert len(answered) == len(set(answered))
    rows = [len(await hub.rows(table)) for table in (JOB, OUTBOX, LEDGER)]
    texts = without_ids(await agents.transcript(item.session))
    own = item.id[-8:]  # in the names of its branch and its worktree
    return [text.replace(own, "ITS-OWN") for text in texts], rows[0], rows[1], rows[2]


async def test_a_story_is_the_same_when_every_unit_of_it_runs_twice(
    hub: StillHub, make_address: Callable[[], Address]
) -> None:
    where = make_address()
    once = StillHub(await opened(where), where)
    told_once = await play(once)
    await once.store.close()
    hub.store = Twice(hub.store)
    assert await play(hub) == told_once
