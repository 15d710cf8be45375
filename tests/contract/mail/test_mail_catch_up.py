"""Catching up, against a real Dovecot and the real intake: each once, in order, late."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa

from fixtures.databases import opened
from fixtures.dovecot import Postbox
from fixtures.mail import context
from fixtures.postbox import letter, listening, using
from fixtures.still_hub import StillHub
from upright.api import Trigger
from upright.kit.late import FACT
from upright.store import intake, sources
from upright.store.codec import load_trigger
from upright.store.tables import TRIGGER
from upright.store.unit import Unit
from upright.testing.context import MemoryContext

MISSED = 200


class HubContext(MemoryContext):
    """A context whose triggers and cursor are the hub's own; see :class:`StillHub`."""

    hub: StillHub

    async def emit(self, triggers: Sequence[Trigger], *, cursor: str | None = None) -> None:
        def unit(u: Unit) -> None:
            intake.accept(u, self.source, triggers, self.hub.policy, cursor=cursor)

        await self.hub.do(unit)
        await super().emit(triggers, cursor=cursor)

    async def cursor(self) -> str | None:
        return await self.hub.see(lambda c: sources.cursor(c, self.source))


@pytest.fixture
async def hub(empty_file: Path, tmp_path: Path) -> AsyncIterator[StillHub]:
    where = Path(shutil.copy(empty_file, tmp_path / "hub.db"))
    made = StillHub(await opened(where), where)
    yield made
    await made.store.close()


async def stored(hub: StillHub) -> list[Trigger]:
    """Return what the hub holds, in the order in which it came."""
    asked = sa.select(TRIGGER.c.body_json).order_by(TRIGGER.c.id)
    return await hub.see(lambda c: [load_trigger(body) for body in c.scalars(asked)])


def missed() -> tuple[list[bytes], list[str]]:
    """Return mails with copies among them, and what is to be heard of them, in order."""
    mails, wanted = list[bytes](), list[str]()
    for number in range(MISSED):
        own = f"<missed-{number}@example.org>"
        if number % 20 == 19:  # delivered twice, as by a list and in person
            mails.append(
                letter(f"missed {number - 5}", Message_ID=f"<missed-{number - 5}@example.org>")
            )
        mails.append(letter(f"missed {number}", Message_ID=own))
        wanted.append(f"missed {number}")
    return mails, wanted


@pytest.mark.feature("mail.catch_up", "common.cursor", "common.dedupe")
@pytest.mark.clause("B1.6", "B2.2", "B2.3")
async def test_what_200_mails_said_meanwhile_is_told_once_in_order_and_late(
    hub: StillHub, postbox: Postbox
) -> None:
    memory = HubContext(source="post", secrets=context().secrets, hurries=False)
    memory.hub = hub
    keys = using(postbox)
    await asyncio.to_thread(postbox.fill, *(letter(f"old {n}") for n in range(50)))
    async with listening(keys, memory):
        await asyncio.to_thread(postbox.put, letter("before"))
        await memory.until(1)
    mails, wanted = missed()
    await asyncio.to_thread(postbox.fill, *mails[:50])
    await asyncio.to_thread(postbox.remove, 1, 2, 60, 61)  # two old ones, and two that were missed
    gone = {f"missed {n}" for n in (8, 9)}
    await asyncio.to_thread(postbox.fill, *mails[50:])
    wanted = [one for one in wanted if one not in gone]
    async with listening(keys, memory):
        await memory.until(1 + len(wanted))
        await asyncio.to_thread(postbox.put, letter("afterwards"))
        await memory.until(2 + len(wanted))
    heard = await stored(hub)
    assert [one.content.text for one in heard] == ["before", *wanted, "afterwards"]
    late = [FACT in one.context.facts for one in heard]
    assert late == [False, *[True] * len(wanted), False]


@pytest.mark.feature("mail.catch_up")
async def test_killed_amid_a_batch_nothing_is_lost_or_told_twice(
    hub: StillHub, postbox: Postbox
) -> None:
    memory = HubContext(source="post", secrets=context().secrets, hurries=False)
    memory.hub = hub
    keys = using(postbox)
    async with listening(keys, memory):
        pass
    await asyncio.to_thread(postbox.fill, *(letter(f"word {n}") for n in range(60)))
    for least in (1, 26, 60):
        async with listening(keys, memory):
            with suppress(AssertionError):
                await memory.until(least)
    assert [one.content.text for one in await stored(hub)] == [f"word {n}" for n in range(60)]
    assert len(memory.emitted) == 60
