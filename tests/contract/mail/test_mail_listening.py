"""Listening, against a real Dovecot: pushed, in order, once, and no flag is touched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count

import pytest

from fixtures.black_hole import black_hole
from fixtures.dovecot import Dovecot, Postbox
from fixtures.mail import PASSWORD, context, facts, mail, settings
from upright.api import ConnectorAuthFailedError, ConnectorNotReadyError, Trigger
from upright.kit.late import FACT
from upright.testing.context import MemoryContext
from upright_mail import cursor
from upright_mail.connector import MailConnector
from upright_mail.settings import MailSettings

numbers = count(1)


def using(postbox: Postbox, *, port: int = 0, **changed: object) -> MailSettings:
    plain = settings(imap_port=port or postbox.server.port, **changed)  # type: ignore[arg-type]  # the caller's
    return with_user(plain, postbox.user)


def with_user(plain: MailSettings, user: str) -> MailSettings:
    from dataclasses import replace

    return replace(plain, user=user)


def letter(text: str, **headers: str) -> bytes:
    return mail(text, **{"Message_ID": f"<n{next(numbers)}@example.org>", **headers})


@asynccontextmanager
async def listening(
    keys: MailSettings, memory: MemoryContext
) -> AsyncIterator[tuple[MailConnector, asyncio.Task[None]]]:
    """Start a connector and have it listen; the task tells how that ended."""
    connector = MailConnector("post", keys)
    await connector.start(memory)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(quietly(connector))
        try:
            await memory.until_cursor()
            yield connector, task
        finally:
            task.cancel()
            await asyncio.wait([task])
            await connector.stop(5.0)


async def quietly(connector: MailConnector) -> None:
    """Listen; the service being gone ends it."""
    try:
        await connector.listen()
    except ConnectorNotReadyError:
        return


def texts(triggers: tuple[Trigger, ...] | list[Trigger]) -> list[str]:
    return [trigger.content.text for trigger in triggers]


@pytest.mark.feature("mail.idle")
@pytest.mark.clause("B1.1")
async def test_a_mail_is_pushed_not_polled(postbox: Postbox) -> None:
    memory = context()
    async with listening(using(postbox, idle_s=30.0, timeout_s=20.0), memory):
        await asyncio.to_thread(postbox.put, letter("hello"))
        (told,) = await memory.until(1, within_s=15)  # well below idle_s
    assert told.content.text == "hello"
    assert FACT not in told.context.facts


@pytest.mark.feature("mail.peek")
async def test_reading_sets_no_flag(postbox: Postbox) -> None:
    memory = context()
    await asyncio.to_thread(postbox.put, letter("old"))
    before = await asyncio.to_thread(postbox.flags)
    async with listening(using(postbox), memory):
        await asyncio.to_thread(postbox.put, letter("new"))
        await memory.until(1)
    after = await asyncio.to_thread(postbox.flags)
    assert set(after.values()) == set(before.values()) == {()}
    assert len(after) == 2
