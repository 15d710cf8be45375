"""Client: the hub's API over the standard library; light, and bounded."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

from upright.cli.errors import CliError, Exit

Json: TypeAlias = Any  # whoever prints it knows its form

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
TIMEOUT_S: Final = 30.0
PATIENCE_S: Final = 3600.0  # a large hub's backup is made before its first byte comes
QUIET_S: Final = 60.0  # a live stream says something far more often
RECONNECT_S: Final = 1.0
RECONNECTS: Final = 10

_EXITS: Final[Mapping[int, Exit]] = {
    400: Exit.USAGE,
    401: Exit.REFUSED,
    403: Exit.REFUSED,
    404: Exit.NOT_FOUND,
    409: Exit.FAILED,
    421: Exit.REFUSED,
    422: Exit.USAGE,
    429: Exit.TRY_AGAIN,
    503: Exit.TRY_AGAIN,
}


class UnreachableError(CliError):
    """No hub answers."""

    def __init__(self, url: str, why: str) -> None:
        said = f"no hub answers at {url} ({why}); start one with `upright up`"
        super().__init__(said, Exit.UNREACHABLE)


class AnsweredError(CliError):
    """The hub answered with a problem; ``code`` is the problem's own."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", f"http.{status}"))
        detail = str(problem.get("detail") or f"the hub answered {status}")
        exit_code = Exit.USAGE if self.code == "store.ambiguous_id" else _EXITS.get(status)
        super().__init__(detail, exit_code or Exit.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """One event of the stream."""

    seq: int
    stop: str
    data: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Hub:
    """A hub's API. Paths are given in parts; each is quoted."""

    url: str
    token: str

    def get(self, *path: str, **query: object) -> Json:
        """Read; a query value of None is left out."""
        return self._ask("GET", path, query, None)

    def post(self, *path: str, **body: str) -> Json:
        """Do."""
        return self._ask("POST", path, {}, body)

    def download(self, *path: str, to: Path) -> None:
        """Write what is answered into *to*, a piece at a time.

        Raises:
            CliError: the answer was cut short.
        """
        connection = self._connect(PATIENCE_S)
        try:
            response = self._send(connection, "GET", _target(path, {}), None)
            _write(response, to)
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(self.url, str(error) or type(error).__name__) from error
        finally:
            connection.close()

    def post_with(self, query: Mapping[str, object], *path: str) -> Json:
        """Do, with what the path's query says; a value of None is left out."""
        return self._ask("POST", path, query, {})

    def newest(self) -> int:
        """Return the newest event's number: ask before you list, then stream from it."""
        return int(self.get("v1", "events", "last")["seq"])

    def events(self, after: int) -> Generator[Happened]:
        """Yield events as they happen, behind number *after*; a lost connection is taken up again.

        Raises:
            UnreachableError: the hub stays away.
        """
        failures = 0
        while True:
            try:
                for event in self._stream(after):
                    after, failures = event.seq, 0
                    yield event
            except UnreachableError:
                failures += 1
                if failures > RECONNECTS:
                    raise
            threading.Event().wait(RECONNECT_S)

    # -------------------------------------------------------------- one request
    def _ask(
        self, method: str, path: tuple[str, ...], query: Mapping[str, object], body: object
    ) -> Json:
        connection = self._connect(TIMEOUT_S)
        try:
            response = self._send(connection, method, _target(path, query), body)
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(self.url, str(error) or type(error).__name__) from error
        finally:
            connection.close()
        return _checked(response.status, content)

    def _stream(self, after: int) -> Iterator[Happened]:
        connection = self._connect(QUIET_S)
        try:
            target = _target(("v1", "events"), {"after": after})
            response = self._send(connection, "GET", target, None)
            if response.status != http.client.OK:
                _checked(response.status, response.read())
            yield from _parse(response)
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(self.url, str(error) or type(error).__name__) from error
        finally:
            connection.close()

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        if address.scheme not in {"http", "https"} or not address.hostname:
            said = f"UPRIGHT_HUB must be an address such as http://127.0.0.1:8765, not {self.url!r}"
            raise CliError(said, Exit.USAGE)
        secure = address.scheme == "https"
        if not secure and address.hostname not in LOOPBACK:
            said = f"{self.url} is not on this machine: use https, or the token could be read"
            raise CliError(said, Exit.REFUSED)
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        return kind(address.hostname, address.port, timeout=timeout_s)

    def _send(
        self, connection: http.client.HTTPConnection, method: str, target: str, body: object
    ) -> http.client.HTTPResponse:
        prefix = urlsplit(self.url).path.rstrip("/")
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        content = json.dumps(body).encode() if body is not None else None
        connection.request(method, prefix + target, content, headers)
        return connection.getresponse()


def _write(response: http.client.HTTPResponse, to: Path) -> None:
    if response.status != http.client.OK:
        _checked(response.status, response.read())
    with to.open("wb") as file:
        shutil.copyfileobj(response, file)
    if response.length:
        said = "the hub's answer was cut short; try again"
        raise CliError(said, Exit.TRY_AGAIN)


def _target(path: tuple[str, ...], query: Mapping[str, object]) -> str:
    wanted = urlencode({name: value for name, value in query.items() if value is not None})
    target = "/" + "/".join(quote(part, safe="") for part in path)
    return f"{target}?{wanted}" if wanted else target


def _checked(status: int, content: bytes) -> Json:
    try:
        said = json.loads(content)
    except ValueError as error:
        if status < http.client.BAD_REQUEST:
            raise CliError("this is no Upright hub: it did not answer with JSON") from error
        said = {}
    if status >= http.client.BAD_REQUEST:
        raise AnsweredError(status, said if isinstance(said, dict) else {})
    return said


def _parse(lines: Iterator[bytes]) -> Iterator[Happened]:
    """Read server-sent events; comments are skipped."""
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.decode().rstrip("\r\n").partition(": ")
        if name and colon:
            fields[name] = value
        elif not name and "data" in fields:
            data = json.loads(fields["data"])
            yield Happened(seq=int(fields["id"]), stop=fields.get("event", ""), data=data)
            fields = {}
