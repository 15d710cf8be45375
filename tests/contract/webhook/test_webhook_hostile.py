"""Bodies that are meant to break a reader, at the real door: each gets one clear answer."""

from __future__ import annotations

from typing import Final

import aiohttp
import pytest

from fixtures.still_hub import StillHub
from fixtures.through_hub import through
from upright.api import SecretRef
from upright.store.tables import TRIGGER
from upright.testing.context import MemoryContext
from upright_webhook.connector import WebhookConnector
from upright_webhook.settings import Mapping, Scheme, WebhookSettings

TOKEN: Final = "a-token-of-this-test"
DEEP: Final = 100_000
CAP: Final = 1_000_000


def connector() -> WebhookConnector:
    mapped = Mapping(title="{t}", text="{t}", thread="{t}", actor="{t}", link="{t}")
    settings = WebhookSettings(
        scheme=Scheme.BEARER, secret=SecretRef("s"), map=mapped, max_body_bytes=CAP
    )
    return WebhookConnector("gh", settings)


@pytest.mark.clause("B2.4")
@pytest.mark.parametrize(
    "body",
    [
        b"[" * DEEP,
        b'{"t":' * DEEP,
        b"[" * DEEP + b"]" * DEEP,
        b'{"t":' * DEEP + b"1" + b"}" * DEEP,
        b'{"t":"\\ud800"}',
        b'{"t":"a\\u0000b"}',
        b'{"t":1e999999}',
        b'{"t":' + b"9" * 100_000 + b"}",
        b'{"t":NaN}',
        b"\xff\xfe{\x00",
        b'{"t":"' + b"x" * (CAP - 20) + b'"}',
        b"x" * (CAP + 1),
        b"",
    ],
    ids=[
        "open arrays",
        "open objects",
        "nested arrays",
        "nested objects",
        "half a pair",
        "null",
        "no number",
        "long number",
        "not a number",
        "no utf-8",
        "long text",
        "too large",
        "nothing",
    ],
)
async def test_no_body_breaks_the_door_and_the_next_one_is_taken(
    hub: StillHub, body: bytes
) -> None:
    made = connector()
    await made.start(MemoryContext(source="gh", secrets={"s": TOKEN}))
    head = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    async with through(hub, made) as door, aiohttp.ClientSession(headers=head) as session:
        async with session.post(door.url, data=body) as answer:
            assert answer.status < 500
        before = len(await hub.rows(TRIGGER))
        async with session.post(door.url, json={"t": "fine"}) as answer:
            assert answer.status == 202
        assert len(await hub.rows(TRIGGER)) == before + 1
    await made.stop(1.0)
