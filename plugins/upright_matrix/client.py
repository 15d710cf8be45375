"""Client: calls to one homeserver, and what a refusal means, as typed errors.

Source: spec.matrix.org, client-server API, "Standard error response" and "Rate limiting".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from upright.api import ConnectorAuthFailedError, ConnectorNotReadyError
from upright.kit.calls import Answer, JsonCalls, LostError, NotSentError

V3: Final = "/_matrix/client/v3"
V1: Final = "/_matrix/client/v1"
SIGNED_OUT: Final = frozenset({"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED"})
LIMIT_S: Final = 5.0  # when a limit does not say how long it holds


def path(*parts: str, base: str = V3) -> str:
    """Return a path of quoted parts."""
    return "/".join((base, *(quote(part, safe="") for part in parts)))


def reason(answer: Answer) -> str:
    """Return what the server says of a failure."""
    said = answer.text("error") or f"HTTP {answer.status}"
    code = answer.text("errcode")
    return f"{said} ({code})" if code else said


def pause_s(answer: Answer) -> float | None:
    """Return for how long a limit asks us to be silent; None when this is no limit."""
    if answer.status != 429 and answer.text("errcode") != "M_LIMIT_EXCEEDED":
        return None
    asked = answer.value.get("retry_after_ms")
    if isinstance(asked, int) and asked > 0:
        return asked / 1000
    return answer.retry_after_s or LIMIT_S


class MatrixClient:
    """Reads for everybody here; sending looks at answers itself."""

    def __init__(self, calls: JsonCalls) -> None:
        self.calls = calls

    async def get(
        self, at: str, query: Mapping[str, str] | None = None, *, within_s: float | None = None
    ) -> Answer:
        """Read; a refusal that is about this one thing is returned.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: the server can't be reached, is ill, or a limit holds.
        """
        try:
            answer = await self.calls.call("GET", at, query=query, within_s=within_s)
        except (NotSentError, LostError) as error:
            raise ConnectorNotReadyError(str(error)) from error
        return healthy(answer)

    async def post(self, at: str, body: Mapping[str, object]) -> Answer:
        """Do what may be done twice; otherwise as :meth:`get`."""
        try:
            answer = await self.calls.call("POST", at, body=body)
        except (NotSentError, LostError) as error:
            raise ConnectorNotReadyError(str(error)) from error
        return healthy(answer)


def healthy(answer: Answer) -> Answer:
    """Return the answer of a server that is well and knows us.

    Raises:
        ConnectorAuthFailedError: the token is refused.
        ConnectorNotReadyError: the server is ill, or a limit holds.
    """
    if answer.status == 401 or answer.text("errcode") in SIGNED_OUT:
        raise ConnectorAuthFailedError(reason(answer))
    wait_s = pause_s(answer)
    if wait_s is not None or answer.status >= 500:
        raise ConnectorNotReadyError(reason(answer), retry_after_s=wait_s)
    return answer
