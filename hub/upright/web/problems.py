"""Problems: every error becomes RFC 9457 JSON with a stable ``code``; nothing inner leaks."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from upright.api import ConnectorAuthFailedError, ConnectorNotReadyError, TriggerRejectedError
from upright.core.errors import CoreError, InvalidError
from upright.store.errors import AmbiguousIdError, StoreUnavailableError, UnknownIdError
from upright.web.parts import BusyError, Parts, RefusedError
from upright.web.plain import encode

log = logging.getLogger(__name__)

PARTS: Final = web.AppKey("parts", Parts)
MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 5.0


class ProblemError(Exception):
    """An answer that is an error; raised by the web's own handlers."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        retry_after_s: float = 0.0,
        more: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.more = more or {}


PROBLEM_PAGE: Final[web.AppKey[Callable[[web.Request, ProblemError], web.Response]]] = web.AppKey(
    "problem_page"
)
"""Shows a problem to a person who looks at pages."""

STATUSES: Final[Mapping[type[Exception], int]] = {
    UnknownIdError: 404,
    AmbiguousIdError: 409,
    RefusedError: 403,
    BusyError: 429,
    StoreUnavailableError: 503,
    ConnectorNotReadyError: 503,
    ConnectorAuthFailedError: 503,
    InvalidError: 422,
    CoreError: 409,
}
"""The first match along an error's own classes decides."""

CLOSES: Final = frozenset({408, 413, 415})
"""The rest of such a request's body is not worth reading."""


def problem(error: ProblemError) -> web.Response:
    """Write a problem."""
    said = {
        "type": f"urn:upright:problem:{error.code}",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        **error.more,
    }
    response = web.Response(body=encode(said), status=error.status, content_type=MEDIA_TYPE)
    if error.retry_after_s > 0:
        response.headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    if error.status in CLOSES:
        response.force_close()
    return response


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every error of a handler; one that nobody foresaw is logged and shows nothing."""
    try:
        _check_target(request)
        return await handler(request)
    except web.HTTPException as error:
        if error.status < HTTPStatus.BAD_REQUEST:
            raise
        code = "http." + HTTPStatus(error.status).phrase.lower().replace(" ", "_")
        detail = f"{request.method} {request.path}: {error.reason}"
        return _answer(request, ProblemError(error.status, code, detail))
    except Exception as error:  # noqa: BLE001  # the boundary: whatever it is, the caller gets an answer
        return _answer(request, translate(error, request))


def _answer(request: web.Request, error: ProblemError) -> web.Response:
    """Write a problem for machines, or show it to a person who looks at pages."""
    is_api = request.path.startswith(("/v1/", "/hooks/"))
    if is_api or "text/html" not in request.headers.get("Accept", ""):
        return problem(error)
    response = request.app[PROBLEM_PAGE](request, error)
    if error.status in CLOSES:
        response.force_close()
    return response


def _check_target(request: web.Request) -> None:
    """Refuse a zero byte in what is asked for: no database looks for one."""
    if "\0" in request.path or any("\0" in text for text in request.query.values()):
        raise ProblemError(HTTPStatus.BAD_REQUEST, "target.zero_byte", "a zero byte is no text")


async def expected(request: web.Request) -> web.StreamResponse | None:
    """Say that a body may come; another expectation than that is a problem (RFC 9110, 10.1.1).

    This stands in for aiohttp's own, which answers with text, before any middleware is asked.
    """
    if request.headers.get("Expect", "").lower() != "100-continue":
        detail = "nothing but 100-continue can be expected"
        return problem(ProblemError(HTTPStatus.EXPECTATION_FAILED, "http.expectation", detail))
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0  # what counts is the answer that is still to come
    return None


def translate(error: Exception, request: web.Request) -> ProblemError:
    """Find an error's status and code."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, TriggerRejectedError):
        known = HTTPStatus.BAD_REQUEST <= error.status < HTTPStatus.INTERNAL_SERVER_ERROR
        return ProblemError(error.status if known else 400, error.code, error.reason)
    statuses = {**STATUSES, **request.app[PARTS].statuses}
    for kind in _classes(error):
        if kind in statuses:
            status = statuses[kind]
            retry_after_s = getattr(error, "retry_after_s", None)
            if retry_after_s is None and status == HTTPStatus.SERVICE_UNAVAILABLE:
                retry_after_s = RETRY_AFTER_S
            code = str(getattr(error, "code", "error"))
            return ProblemError(status, code, str(error), retry_after_s=retry_after_s or 0.0)
    log.error("web.broke", exc_info=error, extra={"path": request.path})
    detail = "something that nobody foresaw went wrong; the hub's log has it"
    return ProblemError(500, "internal", detail)


def _classes(error: Exception) -> Iterator[type[Exception]]:
    for kind in type(error).__mro__:
        if issubclass(kind, Exception):
            yield kind
