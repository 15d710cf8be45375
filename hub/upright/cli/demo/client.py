"""Client: the demo's view from outside: the hub's API, the sandbox, the scripted model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from upright.cli.demo.children import DemoError

Json = Any  # JSON of our own services, read by the demo and by nobody else

TIMEOUT_S: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """One JSON service on this machine."""

    session: aiohttp.ClientSession
    base: str
    token: str = ""

    async def get(self, path: str) -> Json:
        """Read; DemoError when the answer is not 2xx."""
        return await self._call("GET", path, None)

    async def post(self, path: str, body: Mapping[str, object]) -> Json:
        """Tell; DemoError when the answer is not 2xx."""
        return await self._call("POST", path, body)

    async def _call(self, method: str, path: str, body: Mapping[str, object] | None) -> Json:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        try:
            async with self.session.request(
                method, f"{self.base}{path}", json=body, headers=headers, timeout=timeout
            ) as answer:
                text = await answer.text()
                if answer.status >= 300:
                    said = f"{method} {path} answered {answer.status}: {text[:300]}"
                    raise DemoError(said)
                return await answer.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError) as error:
            said = f"{method} {path}: {type(error).__name__} {error}"
            raise DemoError(said) from error
