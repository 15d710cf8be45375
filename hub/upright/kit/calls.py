"""Calls: one HTTP call with a bearer token and JSON, and whether what failed may have worked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from upright.api import Secret

USER_AGENT: Final = "upright"
CONNECT_S: Final = 10.0


class NotSentError(Exception):
    """The request did not leave: no connection was made."""


class LostError(Exception):
    """The request may have been acted on, but no whole answer came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP answer; ``body`` is its decoded JSON, None when it is no JSON."""

    status: int
    headers: Mapping[str, str]
    body: object

    @property
    def value(self) -> Mapping[str, object]:
        """Return its object; an empty one when it is none."""
        return self.body if isinstance(self.body, dict) else {}

    def objects(self, key: str = "") -> tuple[Mapping[str, object], ...]:
        """Return the objects of a list, the body itself or what stands at *key*."""
        found = self.value.get(key) if key else self.body
        listed = found if isinstance(found, list) else []
        return tuple(one for one in listed if isinstance(one, dict))

    def text(self, key: str) -> str:
        """Return a text of the object; empty when there is none."""
        found = self.value.get(key)
        return found if isinstance(found, str) else ""

    @property
    def retry_after_s(self) -> float | None:
        """Return what ``Retry-After`` asks for, in seconds."""
        said = self.headers.get("retry-after", "").strip()
        return float(said) if said.isdigit() else None


class JsonCalls:
    """Calls below one address, with one token; make it inside a running loop.

    No redirect is followed: the token goes nowhere else. *shown_as* is the header that shows it,
    and what stands before it there.
    """

    def __init__(
        self,
        base: str,
        token: Secret,
        *,
        timeout_s: float,
        shown_as: tuple[str, str] = ("Authorization", "Bearer "),
    ) -> None:
        self._base = base.rstrip("/")
        self._token = token
        self._shown_as = shown_as
        self._timeout_s = timeout_s
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())

    @property
    def session(self) -> aiohttp.ClientSession:
        """Return the session, for a WebSocket beside the calls."""
        return self._session

    def headers(self) -> dict[str, str]:
        """Return what each call shows; the token is in it."""
        name, before = self._shown_as
        return {name: f"{before}{self._token.reveal()}", "User-Agent": USER_AGENT}

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
        within_s: float | None = None,
    ) -> Answer:
        """Call; *path* begins with a slash, its parts quoted.

        Raises:
            NotSentError: no connection could be made.
            LostError: it was made, and then no whole answer came in time.
        """
        if self._session.closed:
            raise NotSentError("The source was stopped")
        total_s = within_s or self._timeout_s
        where = urlsplit(self._base).netloc
        try:
            async with self._session.request(
                method,
                self._base + path,
                params=query,
                json=body,
                headers=self.headers(),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=total_s, connect=min(total_s, CONNECT_S)),
            ) as response:
                raw = await response.read()
                status, got = response.status, response.headers
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            reason = f"No connection to {where}: {type(error).__name__}"
            raise NotSentError(reason) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = f"No answer from {where}: {type(error).__name__}"
            raise LostError(reason) from error
        lowered = {name.lower(): value for name, value in got.items()}
        return Answer(status=status, headers=lowered, body=_decoded(raw))


def _decoded(raw: bytes) -> object:
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value
