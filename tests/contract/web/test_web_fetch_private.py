"""What was named by somebody else is asked at public addresses only, looked at when connecting."""

from __future__ import annotations

from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from upright.web.fetch import FetchError, Fetching


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://169.254.169.254/latest/meta-data/",
        "https://10.1.2.3/",
        "https://localhost/",
        "https://127.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "http://login.example.org/",
        "file:///etc/passwd",
        "gopher://login.example.org/",
        "https:///nowhere",
        "//127.0.0.1/",
    ],
)
async def test_no_private_address_is_asked_however_it_is_written(url: str) -> None:
    fetching = Fetching(base="https://login.example.org", timeout_s=2.0)
    with pytest.raises(FetchError):
        await fetching.fetch(url)


async def test_a_redirect_is_not_followed_and_its_target_is_not_asked() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        raise web.HTTPFound("/inside")

    app = web.Application()
    app.router.add_get("/{tail:.*}", answer)
    async with TestServer(app) as server:
        fetching = Fetching(base=str(server.make_url("/")).rstrip("/"))
        got = await fetching.fetch(str(server.make_url("/start")))
    assert (got.status, asked) == (302, ["/start"])


async def test_an_answer_without_an_end_is_cut_at_the_cap() -> None:
    async def pours(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(64):
            await response.write(b"x" * 1024)
        return response

    app = web.Application()
    app.router.add_get("/", pours)
    async with TestServer(app) as server:
        fetching = replace(
            Fetching(base=str(server.make_url("/")).rstrip("/")), max_bytes=10 * 1024
        )
        with pytest.raises(FetchError, match="more than"):
            await fetching.fetch(str(server.make_url("/")))
