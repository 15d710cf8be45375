"""Recovery: webhooks that failed are asked for once more, from the list that GitHub keeps.

GitHub delivers once; what no hub took is kept for three days, and delivered anew on request, under
the same GUID. It needs a token that may see the hooks; without one the listing alone must do.

Source: docs.github.com, "Handling failed webhook deliveries", "Repository webhooks".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from upright.api import ConnectorAuthFailedError, ConnectorContext, ConnectorNotReadyError
from upright_github.client import Answer, GitHubClient, LostError, NotSentError
from upright_github.feeds import moment

KEPT: Final = timedelta(days=3)
MAX_PAGES: Final = 20  # 2 000 deliveries of one hook
MAX_ASKED: Final = 500  # in one go: each is a call that counts

Shape = dict[str, Any]


@dataclass(slots=True)
class Recovery:
    """Asks for failed deliveries of one source; ``asked`` are the GUIDs, so that they are late."""

    client: GitHubClient
    context: ConnectorContext
    asked: set[str] = field(default_factory=set)

    async def redeliver(self, repositories: tuple[str, ...], since: datetime) -> int:
        """Ask for what failed since; return how many deliveries were asked for.

        It is a help, not a duty: what goes wrong is said, and the listing finds what is missing.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: a limit holds.
        """
        began, count = max(since, self.context.now() - KEPT), 0
        try:
            for repository in repositories:
                for hook in await self._hooks(repository):
                    failed = await self._failed(f"{hook}/deliveries", began)
                    count += await self._ask(f"{hook}/deliveries", failed[: MAX_ASKED - count])
        except (NotSentError, LostError, _RefusedError) as error:
            self.context.log.warning("github.not_redelivered", extra={"why": str(error)})
        return count

    async def _hooks(self, repository: str) -> list[str]:
        """Return the paths of the hooks that call this source."""
        path = f"/repos/{repository}/hooks"
        own = f"/hooks/{self.context.source}"
        found = _shapes(await self._get(path, per_page="100"))
        return [
            f"{path}/{hook.get('id')}"
            for hook in found
            if urlsplit(str((hook.get("config") or {}).get("url", ""))).path.endswith(own)
        ]

    async def _failed(self, path: str, began: datetime) -> list[Shape]:
        """Return the last try of each delivery that never worked, oldest first."""
        tries: list[Shape] = []
        query = {"per_page": "100"}
        for _ in range(MAX_PAGES):
            answer = await self._get(path, **query)
            tries += _shapes(answer)
            oldest = moment(tries[-1].get("delivered_at")) if tries else None
            query = answer.next_query
            if not query or oldest is None or oldest < began:
                break
        # what failed once more, although it was asked for, would fail every time
        worked = {one.get("guid") for one in tries if _worked(one)} | self.asked
        last: dict[object, Shape] = {}
        for one in tries:
            at = moment(one.get("delivered_at"))
            if at is not None and at >= began and one.get("guid") not in worked:
                last.setdefault(one.get("guid"), one)
        return list(last.values())[::-1]

    async def _ask(self, path: str, failed: Iterable[Shape]) -> int:
        count = 0
        for one in failed:
            guid = str(one.get("guid"))
            self.asked.add(guid)  # before: it may come before the answer does
            answer = await self.client.post(f"{path}/{one.get('id')}/attempts", {})
            if answer.status != 202:
                self.asked.discard(guid)
            self._require(answer, 202)
            count += 1
        return count

    async def _get(self, path: str, **query: str) -> Answer:
        answer = await self.client.get(path, **query)
        self._require(answer, 200)
        return answer

    def _require(self, answer: Answer, status: int) -> None:
        if answer.status == status:
            return
        if answer.status == 401:
            raise ConnectorAuthFailedError(answer.message)
        pause_s = answer.pause_s(self.context.now())
        if pause_s is not None:
            raise ConnectorNotReadyError(answer.message, retry_after_s=pause_s)
        raise _RefusedError(answer)


class _RefusedError(Exception):
    """GitHub does not show the hooks to this token, or can't deliver now."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.message} (HTTP {answer.status})")


def _shapes(answer: Answer) -> list[Shape]:
    found = answer.value if isinstance(answer.value, list) else []
    return [one for one in found if isinstance(one, dict)]


def _worked(delivery: Shape) -> bool:
    status = delivery.get("status_code")
    return isinstance(status, int) and 200 <= status < 300
