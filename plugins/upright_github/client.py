"""Client: one call to GitHub's API, and what its answer means, as typed outcomes.

Source: docs.github.com, "Rate limits for the REST API" and "Best practices for using the REST API".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import aiohttp

from upright.api import Secret
from upright.kit.tail import tail

API_VERSION: Final = "2022-11-28"
USER_AGENT: Final = "upright"
CONNECT_S: Final = 10.0
SECONDARY_LIMIT_S: Final = 60.0  # at the least, when the answer does not say how long
MAX_PAUSE_S: Final = 3_600.0
_MAX_REDIRECTS: Final = 2
_NEXT: Final = re.compile(r'<([^<>]{1,4096})>;\s*rel="next"')
_ELSEWHERE: Final = 302
_REDIRECTS: Final = frozenset({301, 307, 308})


class NotSentError(Exception):
    """The request did not leave: no connection was made."""


class LostError(Exception):
    """The request may have been acted on, but no answer came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP answer; ``value`` is its decoded JSON, None when it is no JSON."""

    status: int
    headers: Mapping[str, str]
    value: object

    @property
    def message(self) -> str:
        """Return what GitHub says about the failure."""
        said = self.value.get("message") if isinstance(self.value, dict) else None
        return said if isinstance(said, str) else f"HTTP {self.status}"

    @property
    def has_next(self) -> bool:
        """Tell whether another page follows."""
        return 'rel="next"' in self.headers.get("link", "")

    @property
    def next_query(self) -> dict[str, str]:
        """Return the query of the next page; empty when this is the last."""
        found = _NEXT.search(self.headers.get("link", ""))
        return dict(parse_qsl(urlsplit(found[1]).query)) if found else {}

    def pause_s(self, now: datetime, *, tries: int = 0) -> float | None:
        """Return for how long a limit asks us to be silent; None when this is no limit.

        The secondary limit often names no time: then a minute, doubled with each earlier try.
        """
        if self.status not in {403, 429}:
            return None
        retry_after = self.headers.get("retry-after", "")
        if retry_after.isdigit():
            return min(max(1.0, float(retry_after)), MAX_PAUSE_S)
        reset = self.headers.get("x-ratelimit-reset", "")
        if self.headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
            return min(max(1.0, float(reset) - now.timestamp()), MAX_PAUSE_S)
        said = self.message.lower()
        if self.status == 429 or "rate limit" in said or "abuse detection" in said:
            return min(SECONDARY_LIMIT_S * (1 << min(tries, 6)), MAX_PAUSE_S)
        return None


class GitHubClient:
    """Calls below one API address, with one token; make it inside a running loop."""

    def __init__(self, api_url: str, token: Secret, *, timeout_s: float) -> None:
        self._base = api_url.rstrip("/")
        self._token = token
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=timeout_s, connect=min(timeout_s, CONNECT_S)),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def get(self, path: str, *, etag: str = "", **query: str) -> Answer:
        """Read; *path* begins with a slash. With an *etag* the answer may be 304."""
        return await self._call("GET", path, query=query, etag=etag)

    async def post(self, path: str, body: Mapping[str, object]) -> Answer:
        """Create; called twice it creates twice."""
        return await self._call("POST", path, body=body)

    async def log_tail(self, path: str) -> str:
        """Return the end of a log; empty when there is none.

        GitHub sends us to another host for it, which must not see the token.

        Raises:
            NotSentError, LostError: as for every call.
        """
        answer = await self._once("GET", self._base + path, None, None, etag="")
        target = answer.headers.get("location", "")
        safe = {"https", urlsplit(self._base).scheme}
        if answer.status != _ELSEWHERE or urlsplit(target).scheme not in safe:
            return ""
        try:
            headers = {"User-Agent": USER_AGENT}
            async with self._session.get(
                target, headers=headers, allow_redirects=False
            ) as response:
                return await tail(response.content.iter_any()) if response.status == 200 else ""
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = f"No log from {urlsplit(target).netloc}: {type(error).__name__}"
            raise LostError(reason) from error

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
        etag: str = "",
    ) -> Answer:
        """Call, and follow a renamed repository within the same host; the token goes nowhere else.

        Raises:
            NotSentError: no connection could be made.
            LostError: it was made, and then no whole answer came in time.
        """
        url = self._base + path
        for _ in range(_MAX_REDIRECTS):
            answer = await self._once(method, url, query, body, etag=etag)
            target = answer.headers.get("location", "")
            if answer.status not in _REDIRECTS or not self._is_ours(target):
                return answer
            url, query = target, None
        return await self._once(method, url, query, body, etag=etag)

    def _is_ours(self, target: str) -> bool:
        ours, theirs = urlsplit(self._base), urlsplit(target)
        return (ours.scheme, ours.netloc) == (theirs.scheme, theirs.netloc)

    async def _once(
        self,
        method: str,
        url: str,
        query: Mapping[str, str] | None,
        body: Mapping[str, object] | None,
        *,
        etag: str,
    ) -> Answer:
        if self._session.closed:
            raise NotSentError("The source was stopped")
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token.reveal()}",
            "User-Agent": USER_AGENT,
            "X-GitHub-Api-Version": API_VERSION,
            **({"If-None-Match": etag} if etag else {}),
        }
        try:
            async with self._session.request(
                method, url, params=query, json=body, headers=headers, allow_redirects=False
            ) as response:
                raw = await response.read()
                status = response.status
                got = {name.lower(): value for name, value in response.headers.items()}
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            reason = f"No connection to {urlsplit(url).netloc}: {type(error).__name__}"
            raise NotSentError(reason) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = f"No answer from {urlsplit(url).netloc}: {type(error).__name__}"
            raise LostError(reason) from error
        return Answer(status=status, headers=got, value=_decode(raw))


def _decode(raw: bytes) -> object:
    try:
        value: object = json.loads(raw)
    except ValueError:
        return None
    return value
