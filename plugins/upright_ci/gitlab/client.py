"""Client: one call to GitLab's API, and what its answer means, as typed outcomes.

Source: docs.gitlab.com, "REST API", "Rate limits" and "Jobs API".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

import aiohttp

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorNotReadyError,
    Secret,
)
from upright.kit.calls import JsonCalls, LostError, NotSentError
from upright.kit.tail import tail

MAX_PAUSE_S: Final = 3_600.0
LIMIT_S: Final = 60.0  # where a 429 does not say how long


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP answer; ``value`` is its decoded JSON, None when it is no JSON."""

    status: int
    headers: Mapping[str, str]
    value: object

    @property
    def message(self) -> str:
        """Return what GitLab says about the failure."""
        found = self.value if isinstance(self.value, dict) else {}
        said = found.get("message") or found.get("error")
        return str(said)[:300] if said else f"HTTP {self.status}"

    @property
    def next_page(self) -> str:
        """Return the number of the next page; empty at the end."""
        return self.headers.get("x-next-page", "").strip()

    @property
    def pause_s(self) -> float | None:
        """Return for how long a limit asks us to be silent; None when this is no limit."""
        if self.status != 429:
            return None
        said = self.headers.get("retry-after", "")
        return min(max(1.0, float(said)), MAX_PAUSE_S) if said.isdigit() else LIMIT_S


class GitLabClient:
    """Calls below one address, with one token; make it inside a running loop."""

    def __init__(self, url: str, token: Secret, *, timeout_s: float) -> None:
        self._base, self._timeout_s = f"{url.rstrip('/')}/api/v4", timeout_s
        shown_as = ("PRIVATE-TOKEN", "")
        self._calls = JsonCalls(self._base, token, timeout_s=timeout_s, shown_as=shown_as)

    async def close(self) -> None:
        """Close all connections."""
        await self._calls.close()

    async def get(self, path: str, **query: str) -> Answer:
        """Read; *path* begins with a slash."""
        return await self._call("GET", path, query=query)

    async def read(self, path: str, **query: str) -> Answer:
        """Read, and raise what a refusal means for the source.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: GitLab can't be reached, or a limit holds.
        """
        try:
            answer = await self.get(path, **query)
        except (NotSentError, LostError) as error:
            raise ConnectorNotReadyError(str(error)) from error
        if answer.status == 401:
            raise ConnectorAuthFailedError(answer.message)
        if answer.status != 200:
            said = f"GET {path}: {answer.message}"
            raise ConnectorNotReadyError(said, retry_after_s=answer.pause_s)
        return answer

    async def post(self, path: str, body: Mapping[str, object]) -> Answer:
        """Create; called twice it creates twice."""
        return await self._call("POST", path, body=body)

    async def log_tail(self, project: str, job: int) -> str:
        """Return the end of a job's log; empty when there is none.

        The log is read as it comes and only its end is kept; of an endless one we give up.

        Raises:
            NotSentError, LostError: as for every call.
        """
        url = f"{self._base}{project_path(project)}/jobs/{job}/trace"
        try:
            async with self._calls.session.get(
                url,
                headers=self._calls.headers(),
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
                allow_redirects=False,
            ) as response:
                return await tail(response.content.iter_any()) if response.status == 200 else ""
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = f"No log from {urlsplit(url).netloc}: {type(error).__name__}"
            raise LostError(reason) from error

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> Answer:
        found = await self._calls.call(method, path, query=query, body=body)
        return Answer(status=found.status, headers=found.headers, value=found.body)


def project_path(project: str) -> str:
    """Return the path of a project, by its full path or its number."""
    return f"/projects/{quote(project, safe='')}"
