"""What is sent on a bare socket means one thing or nothing: no request hides in another (B14)."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import Final
from urllib.parse import urlsplit

import pytest

from fixtures.web_hub import TOKEN, Client

HIDDEN: Final = (
    b"POST /v1/sessions/se_fix/stop HTTP/1.1\r\nHost: localhost\r\n"
    b"Authorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
)
"""What an attacker would have the hub take for the next visitor's own request."""
LAST: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
PATIENCE_S: Final = 1.0  # for a line that the hub keeps open, waiting for more


async def sent(client: Client, whole: bytes) -> list[int]:
    """Send bytes; return the status of each answer until the line is closed or silent."""
    address = urlsplit(client.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    answered = bytearray()
    with contextlib.suppress(TimeoutError, ConnectionResetError):
        async with asyncio.timeout(PATIENCE_S):
            writer.write(whole)
            while got := await reader.read(65_536):
                answered += got
    writer.close()
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", answered)]


def asked(door: str, *headers: bytes, body: bytes = b"") -> bytes:
    first = f"POST {door} HTTP/1.1".encode()
    return b"\r\n".join([first, b"Host: localhost", *headers, b"", body])


DOORS: Final = ("/hooks/gh", "/v1/sessions/se_fix/say")
SIZE: Final = str(len(HIDDEN)).encode()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "headers",
    [
        (b"Content-Length: 0", b"Content-Length: " + SIZE),
        (b"Content-Length: " + SIZE + b", 0",),
        (b"Content-Length: " + SIZE, b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: chunked", b"Content-Length: " + SIZE),
        (b"Transfer-Encoding: identity, chunked", b"Content-Length: 5"),
        (b"Transfer-Encoding: xchunked", b"Content-Length: 0"),
        (b"Transfer-Encoding : chunked", b"Content-Length: 0"),
        (b"Content-Length: +5",),
        (b"Content-Length: -1",),
        (b"Content-Length: 0x5",),
        (b"Content-Length: 5_0",),
        (b"X-Folded: one\r\n two", b"Content-Length: 0"),
        (b" Content-Length: 5",),
        (b"X-Nul: a\x00b", b"Content-Length: 0"),
        (b"X-Bare: a\rContent-Length: 5", b"Content-Length: 0"),
        (b"no colon", b"Content-Length: 0"),
        (b"Host: evil.example", b"Content-Length: 0"),
        (b"X-Huge: " + b"x" * 70_000, b"Content-Length: 0"),
    ],
    ids=lambda headers: headers[0][:24].decode("latin-1").encode("unicode_escape").decode(),
)
async def test_no_request_hides_in_another(
    client: Client, door: str, headers: tuple[bytes, ...]
) -> None:
    """Either it is refused and the line ends, or its body is its body and nothing more."""
    bearer = b"Authorization: Bearer no"
    statuses = await sent(client, asked(door, bearer, *headers, body=b"0\r\n\r\n" + HIDDEN + LAST))
    assert client.behind.asked == []
    assert client.behind.inbound == []
    assert len(statuses) <= 1
    assert all(400 <= status < 500 for status in statuses)


async def test_after_all_that_the_next_one_is_served(client: Client) -> None:
    await sent(client, asked("/hooks/gh", b"Content-Length: 1", b"Content-Length: 2"))
    assert await sent(client, asked("/hooks/gh", b"Content-Length: 2", body=b"{}" + LAST)) == [
        202,
        200,
    ]
    assert await sent(client, HIDDEN + LAST) == [200, 200]  # it would have done something
    assert client.behind.asked[-1] == ("stop", "se_fix")
