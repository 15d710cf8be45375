"""Client: HTTP to one calendar server, with bounds; what goes wrong becomes a typed error."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp

from upright.api import ConnectorAuthFailedError, ConnectorNotReadyError, Secret

MAX_REDIRECTS: Final = 5
MAX_PAUSE_S: Final = 86_400.0
_LATER: Final = frozenset({429, 503})
AGENT: Final = "Upright (calendar)"


class LostError(ConnectorNotReadyError):
    """A request was sent, and its answer never came: it may have taken effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server said; ``url`` is where it was said, after redirects."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    url: str


class CalendarClient:
    """One server, one user; ``now`` is for pauses that it asks for by a date."""

    def __init__(
        self, url: str, user: str, password: Secret | None, *, timeout_s: float, max_bytes: int
    ) -> None:
        self.url = url
        self._max_bytes = max_bytes
        headers = {"User-Agent": AGENT}
        if password is not None:
            signed = aiohttp.encode_basic_auth(user, password.reveal(), encoding="utf-8")
            headers["Authorization"] = signed
        self._session = aiohttp.ClientSession(
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def ask(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send one request; a path, as it is encoded, is below the server's address.

        Raises:
            ConnectorAuthFailedError: the credentials are refused (401).
            ConnectorNotReadyError: no connection, too long an answer, or it asks for patience.
            LostError: it was sent, and no answer came.
        """
        target = urljoin(self.url, url)
        try:
            async with self._session.request(
                method,
                target,
                data=body or None,
                headers=dict(headers or {}),
                max_redirects=MAX_REDIRECTS,
            ) as response:
                answer = Answer(
                    status=response.status,
                    body=await self._read(response),
                    headers={name.lower(): value for name, value in response.headers.items()},
                    url=str(response.url),
                )
        except aiohttp.ClientConnectorError as error:
            problem = f"{_host(target)} can't be reached: {error.strerror or error}"
            raise ConnectorNotReadyError(problem) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            problem = f"{_host(target)} gave no answer: {type(error).__name__}"
            raise LostError(problem) from error
        return _checked(answer)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        parts, size = list[bytes](), 0
        async for part in response.content.iter_chunked(65_536):
            size += len(part)
            if size > self._max_bytes:
                problem = f"the answer is longer than {self._max_bytes} bytes"
                raise ConnectorNotReadyError(problem)
            parts.append(part)
            await asyncio.sleep(0)
        return b"".join(parts)


def _checked(answer: Answer) -> Answer:
    if answer.status == 401:
        problem = f"{_host(answer.url)} refuses the user or the password"
        raise ConnectorAuthFailedError(problem)
    if answer.status in _LATER:
        problem = f"{_host(answer.url)} asks for patience (HTTP {answer.status})"
        raise ConnectorNotReadyError(problem, retry_after_s=pause_s(answer.headers))
    return answer


def pause_s(headers: Mapping[str, str]) -> float | None:
    """Return for how long a server asks to be left alone, by its own clock."""
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return min(float(said), MAX_PAUSE_S)
    until, now = _date(said), _date(headers.get("date", ""))
    if until is None or now is None:
        return None
    return min(max((until - now).total_seconds(), 0.0), MAX_PAUSE_S)


def _date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except ValueError:
        return None


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]
