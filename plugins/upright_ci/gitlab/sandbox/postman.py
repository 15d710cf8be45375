"""Postman: webhooks as GitLab sends them, and what it does about the answers.

Source: docs.gitlab.com, "Webhooks", "Delivery headers" and "Auto-disabled webhooks".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from upright.api import InboundRequest

TIMEOUT_S: Final = 10.0
MAX_FAILURES: Final = 4
_NAMES: Final = {
    "pipeline": "Pipeline Hook",
    "build": "Job Hook",
    "merge_request": "Merge Request Hook",
    "note": "Note Hook",
}


@dataclass(slots=True, kw_only=True)
class Postman:
    """Sends to one address; a hook that was answered 4xx is off, and stays so."""

    url: str
    token: str
    base: str
    new_guid: Callable[[], str]
    disabled: bool = False
    failures: int = 0
    sent: list[tuple[InboundRequest, int]] = field(default_factory=list)

    def written(self, payload: dict[str, Any]) -> InboundRequest:
        """Return a payload as a request, with a key of its own."""
        headers = {
            "content-type": "application/json",
            "user-agent": "GitLab/17.6.0",
            "x-gitlab-event": _NAMES.get(str(payload.get("object_kind")), "System Hook"),
            "x-gitlab-token": self.token,
            "x-gitlab-instance": self.base,
            "x-gitlab-webhook-uuid": "11111111-2222-4333-8444-555555555555",
            "x-gitlab-event-uuid": self.new_guid(),
            "idempotency-key": self.new_guid(),
        }
        return InboundRequest(headers=headers, body=json.dumps(payload).encode())

    async def deliver(self, request: InboundRequest) -> int:
        """Post a request; return the answer's status, 0 when there was none."""
        if self.disabled or not self.url:
            return 0
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(self.url, data=request.body, headers=request.headers) as response,
            ):
                status = response.status
        except (aiohttp.ClientError, TimeoutError):
            status = 0
        self.sent.append((request, status))
        self.failures = 0 if 200 <= status < 300 else self.failures + 1
        self.disabled = 400 <= status < 500 or self.failures >= MAX_FAILURES
        return status
