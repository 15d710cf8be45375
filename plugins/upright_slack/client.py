"""Client: calls of Slack's Web API, and what ``"ok": false`` means, as typed errors.

Source: docs.slack.dev, "Web API" and "Rate limits".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from upright.api import ConnectorAuthFailedError, ConnectorContext, ConnectorNotReadyError
from upright.kit.calls import Answer, JsonCalls, LostError, NotSentError

SIGNED_OUT: Final = frozenset(
    {
        *("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"),
        *("no_permission", "missing_scope", "not_allowed_token_type"),
    }
)
ILL: Final = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})
LIMIT_S: Final = 30.0  # when a limit does not say how long it holds
MAX_WAIT_S: Final = 120.0  # a reader waits so long for a limit to pass
_TRIES: Final = 5
PAGE: Final = "200"

Shape = Mapping[str, Any]


def error_of(answer: Answer) -> str:
    """Return Slack's word for a failure; empty when there was none."""
    if answer.value.get("ok") is True:
        return ""
    return answer.text("error") or f"HTTP {answer.status}"


def pause_s(answer: Answer) -> float | None:
    """Return for how long a limit asks us to be silent; None when this is no limit."""
    if answer.status != 429 and answer.text("error") not in {"ratelimited", "rate_limited"}:
        return None
    return answer.retry_after_s or LIMIT_S


class SlackClient:
    """Reads of one workspace; they wait for a rate limit to pass."""

    def __init__(self, calls: JsonCalls, context: ConnectorContext) -> None:
        self.calls = calls
        self._context = context

    async def read(self, method: str, **query: str) -> Answer:
        """Call a method that changes nothing; a refusal about this one thing is returned.

        Raises:
            ConnectorAuthFailedError: the token is refused, or lacks a scope.
            ConnectorNotReadyError: Slack can't be reached, is ill, or limits us for long.
        """
        for _ in range(_TRIES):
            try:
                answer = await self.calls.call("GET", f"/{method}", query=query)
            except (NotSentError, LostError) as error:
                raise ConnectorNotReadyError(str(error)) from error
            wait_s = pause_s(answer)
            if wait_s is None:
                return _healthy(method, answer)
            if wait_s > MAX_WAIT_S:
                break
            await self._context.sleep(wait_s)
        reason = f"{method}: Slack limits our calls"
        raise ConnectorNotReadyError(reason, retry_after_s=LIMIT_S)

    async def pages(self, method: str, key: str, **query: str) -> AsyncIterator[Shape]:
        """Yield the objects of all pages; nothing more after a page that is refused."""
        cursor = ""
        while True:
            more = {"cursor": cursor} if cursor else {}
            answer = await self.read(method, limit=PAGE, **query, **more)
            if error := error_of(answer):
                extra = {"source": self._context.source, "method": method, "why": error}
                self._context.log.warning("slack.page_refused", extra=extra)
                return
            for shape in answer.objects(key):
                yield shape
            told = answer.value.get("response_metadata")
            cursor = str(told.get("next_cursor") or "") if isinstance(told, dict) else ""
            if not cursor:
                return


def _healthy(method: str, answer: Answer) -> Answer:
    error = error_of(answer)
    if error in SIGNED_OUT or answer.status == 401:
        said = f"{method}: {error}"
        raise ConnectorAuthFailedError(said)
    if error in ILL or answer.status >= 500 or (error and not answer.value):
        said = f"{method}: {error}"
        raise ConnectorNotReadyError(said)
    return answer
