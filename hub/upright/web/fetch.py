"""Fetch: asks a configured host; what is elsewhere only by https, and never at a private address.

No redirect is followed, no proxy of the environment is used, and an answer has a cap.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from upright.core.addresses import is_literal, is_public

MAX_BYTES: Final = 512 * 1024
TIMEOUT_S: Final = 10.0


class FetchError(Exception):
    """It could not be fetched; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer, whole."""

    status: int
    body: bytes


class _PublicOnly(AbstractResolver):
    """Finds public addresses only, but for the one host that is configured."""

    def __init__(self, trusted: str) -> None:
        self._trusted = trusted
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        if host == self._trusted:
            return found
        public = [each for each in found if is_public(each["host"])]
        if not public:
            problem = f"{host} is at a private address"
            raise OSError(errno.EACCES, problem)
        return public

    async def close(self) -> None:
        await self._resolver.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """Fetches what belongs to the service at ``base``, an address that is configured."""

    base: str
    timeout_s: float = TIMEOUT_S
    max_bytes: int = field(default=MAX_BYTES)

    async def fetch(
        self, url: str, *, form: Mapping[str, str] | None = None, bearer: str = ""
    ) -> Fetched:
        """Fetch, by POST when there is a *form*.

        Raises:
            FetchError: it may not be fetched, or could not be, in time and under the cap.
        """
        self._check(url)
        headers = {"Accept": "application/json"}
        if bearer:
            headers["Authorization"] = f"Bearer {bearer}"
        trusted = urlsplit(self.base).hostname or ""
        connector = TCPConnector(resolver=_PublicOnly(trusted))
        try:
            async with (
                ClientSession(
                    connector=connector, timeout=ClientTimeout(self.timeout_s), trust_env=False
                ) as session,
                session.request(
                    "GET" if form is None else "POST",
                    url,
                    data=form,
                    headers=headers,
                    allow_redirects=False,
                ) as response,
            ):
                body = await response.content.read(self.max_bytes + 1)
                while len(body) <= self.max_bytes and not response.content.at_eof():
                    body += await response.content.read(self.max_bytes + 1 - len(body))
        except (ClientError, OSError, TimeoutError) as error:
            raise FetchError(str(error) or type(error).__name__) from error
        if len(body) > self.max_bytes:
            problem = f"the answer has more than {self.max_bytes} bytes"
            raise FetchError(problem)
        return Fetched(response.status, body)

    def _check(self, url: str) -> None:
        address, base = urlsplit(url), urlsplit(self.base)
        if (address.scheme, address.netloc) == (base.scheme, base.netloc):
            return
        host = address.hostname or ""
        if address.scheme != "https":
            problem = f"{host} is not asked without https"
            raise FetchError(problem)
        if is_literal(host) and not is_public(host):  # a name is looked at when it is resolved
            problem = f"{host} is a private address"
            raise FetchError(problem)
