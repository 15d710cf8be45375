"""Hooks: what a provider is answered, and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fixtures.web_hub import PUSH, Behind, Client, Stored
from upright.api import (
    Answered,
    ConnectorAuthFailedError,
    ConnectorNotReadyError,
    TriggerRejectedError,
)
from upright.store.errors import StoreUnavailableError
from upright.web.parts import BusyError


async def posted(client: Client, body: bytes = b"{}", path: str = "/hooks/gh") -> tuple[int, Any]:
    async with client.session.post(client.url + path, data=body) as response:
        return response.status, await response.json(content_type=None)


async def test_a_new_trigger_is_202_with_its_id_and_needs_no_token(client: Client) -> None:
    assert await posted(client) == (202, {"triggers": [{"id": "tr_new", "duplicate": False}]})
    assert client.behind.asked == [("accept", "gh", 1)]


async def test_a_duplicate_is_200_with_the_first_ones_id(client: Client) -> None:
    client.behind.accepted = (Stored("tr_red", duplicate=True),)
    assert await posted(client) == (200, {"triggers": [{"id": "tr_red", "duplicate": True}]})


async def test_a_request_that_holds_no_trigger_is_200_and_stores_nothing(client: Client) -> None:
    client.behind.triggers = ()
    assert await posted(client) == (200, {"triggers": []})
    assert client.behind.asked == []


async def test_the_connector_gets_the_bytes_as_they_came(client: Client) -> None:
    body = '{"emoji": "🎉",  "x":1}'.encode()
    headers = {"X-Hub-Signature-256": "sha256=00"}
    async with client.session.post(f"{client.url}/hooks/gh", data=body, headers=headers):
        pass
    (request,) = client.behind.inbound
    assert request.body == body
    assert request.headers["x-hub-signature-256"] == "sha256=00"
    assert request.remote == "127.0.0.1"


@pytest.mark.clause("B2.4")
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (TriggerRejectedError("wrong", status=401, code="signature.wrong"), 401, "signature.wrong"),
        (TriggerRejectedError("torn"), 400, "trigger.rejected"),
        (TriggerRejectedError("odd", status=302), 400, "trigger.rejected"),
        (ConnectorNotReadyError("loading", retry_after_s=2.5), 503, "connector.not_ready"),
        (ConnectorAuthFailedError("no secret"), 503, "connector.auth_failed"),
        (BusyError("full", retry_after_s=7), 429, "busy"),
        (StoreUnavailableError("disk full"), 503, "store.unavailable"),
        (RuntimeError("the inside"), 500, "internal"),
    ],
)
async def test_each_refusal_has_its_status_and_its_code(
    client: Client, error: Exception, status: int, code: str
) -> None:
    client.behind.raises = error
    async with client.session.post(f"{client.url}/hooks/gh", data=b"{}") as response:
        said = await response.json(content_type="application/problem+json")
        assert (response.status, said["status"], said["code"]) == (status, status, code)
        assert said["type"] == f"urn:upright:problem:{code}"
        assert ("Retry-After" in response.headers) is (status in {429, 503})
        assert "the inside" not in said["detail"]
    assert not client.behind.asked


async def test_retry_after_is_rounded_up(client: Client) -> None:
    client.behind.raises = ConnectorNotReadyError("loading", retry_after_s=2.5)
    async with client.session.post(f"{client.url}/hooks/gh", data=b"{}") as response:
        assert response.headers["Retry-After"] == "3"


async def test_an_unknown_source_is_404_before_anything_is_read(client: Client) -> None:
    status, said = await posted(client, path="/hooks/nobody")
    assert (status, said["code"]) == (404, "source.unknown")
    assert not client.behind.inbound


@pytest.mark.clause("B2.4")
async def test_an_announced_oversized_body_is_413_before_it_is_read(client: Client) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(client.url.rpartition(":")[2]))
    writer.write(b"POST /hooks/gh HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n")
    head = await reader.readuntil(b"\r\n")  # nothing of the body was sent
    writer.close()
    assert head == b"HTTP/1.1 413 Request Entity Too Large\r\n"


@pytest.mark.clause("B2.4")
async def test_an_oversized_body_without_a_length_is_cut_off(client: Client) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 500

    async with client.session.post(f"{client.url}/hooks/gh", data=pieces()) as response:
        assert response.status == 413
    assert not client.behind.inbound


async def test_a_body_at_the_cap_is_taken(client: Client) -> None:
    assert (await posted(client, b"x" * 1000))[0] == 202


async def test_a_body_that_stalls_is_408(client: Client) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(client.url.rpartition(":")[2]))
    writer.write(b"POST /hooks/gh HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
    head = await reader.readuntil(b"\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 408 ")


async def test_a_compressed_body_is_415(client: Client) -> None:
    headers = {"Content-Encoding": "gzip"}
    async with client.session.post(
        f"{client.url}/hooks/gh", data=b"\x1f\x8b", headers=headers
    ) as response:
        assert response.status == 415
    assert not client.behind.inbound


@pytest.mark.clause("B2.4")
async def test_refusals_are_counted_by_source_and_code(client: Client, behind: Behind) -> None:
    behind.raises = TriggerRejectedError("wrong", status=401, code="signature.wrong")
    await posted(client)
    await posted(client)
    await posted(client, path="/hooks/nobody")
    async with client.session.get(f"{client.url}/metrics") as response:
        lines = (await response.text()).splitlines()
    assert [line for line in lines if line.startswith("upright_hooks")] == [
        'upright_hooks_refused_total{source="gh",code="signature.wrong"} 2'
    ]


async def test_a_connector_may_answer_in_its_own_words_after_the_commit(client: Client) -> None:
    client.behind.triggers = Answered(
        triggers=(PUSH,), text='{"c":"é"}', content_type="application/json"
    )
    async with client.session.post(f"{client.url}/hooks/gh", data=b"{}") as response:
        assert (response.status, response.content_type) == (200, "application/json")
        assert await response.text() == '{"c":"é"}'
    assert client.behind.asked == [("accept", "gh", 1)]


async def test_an_answer_without_triggers_stores_nothing(client: Client) -> None:
    client.behind.triggers = Answered(text="challenge")
    async with client.session.post(f"{client.url}/hooks/gh", data=b"{}") as response:
        assert await response.text() == "challenge"
    assert client.behind.asked == []
