"""Owner's line: one question, one answer, each a line of JSON, over the owner's private socket."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from upright_execd.errors import ExecdError, NotRunningError, RemoteError
from upright_execd.opening import opened
from upright_execd.paths import Paths
from upright_execd.peer import connect, is_from_a_command, is_same_user, listen, marks_above
from upright_execd.pinned import why_none

BOUND_S: Final = 10.0
MAX_LINE_BYTES: Final = 4 * 1024 * 1024

Answerer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
log: Final = logging.getLogger("upright.execd")


# ------------------------------------------------------------------ the daemon's side
class OwnerLine:
    """Answers the owner until cancelled; *answer* may raise an ExecdError, which is passed on.

    A command of this daemon is not heard; one that the daemon itself runs in is.
    """

    def __init__(self, paths: Paths, answer: Answerer) -> None:
        self._paths, self._answer = paths, answer
        self._inherited = frozenset[bytes]()

    async def run(self) -> None:
        """Listen."""
        inherited = await asyncio.to_thread(marks_above, os.getpid())
        self._inherited = inherited or frozenset()
        server = await opened(lambda: listen(self._paths.socket), socket.socket.close)
        came, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(server, came.set)
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await came.wait()
                    came.clear()
                    self._accept(server, group)
        finally:
            loop.remove_reader(server)
            server.close()

    def _accept(self, server: socket.socket, group: asyncio.TaskGroup) -> None:
        """Take the next connection; it is closed even if its task ends before it begins.

        Not ``sock_accept``: a cancellation between its accept and its return loses the connection.
        """
        try:
            connection, _ = server.accept()
        except BlockingIOError:
            return
        connection.settimeout(0)
        task = group.create_task(self._serve(connection), name="owner's question")
        task.add_done_callback(lambda _: connection.close())

    async def _serve(self, connection: socket.socket) -> None:
        if not is_same_user(connection) or await asyncio.to_thread(
            is_from_a_command, connection, self._inherited
        ):
            log.warning("owner.stranger")
            return
        try:
            async with asyncio.timeout(BOUND_S):
                line = await _line(connection)
                reply = json.dumps(self._reply(line)).encode() + b"\n"
                await asyncio.get_running_loop().sock_sendall(connection, reply)
        except (TimeoutError, OSError) as error:
            log.info("owner.hung_up", extra={"why": str(error)})

    def _reply(self, line: bytes) -> Mapping[str, Any]:
        try:
            return {"ok": self._answer(dict(json.loads(line)))}
        except ExecdError as error:
            return {"error": str(error), "exit_code": error.exit_code}
        except (ValueError, KeyError, TypeError) as error:
            return {"error": f"The daemon doesn't understand this: {error!r}.", "exit_code": 2}


async def _line(connection: socket.socket) -> bytes:
    loop, content = asyncio.get_running_loop(), b""
    while not content.endswith(b"\n") and len(content) < MAX_LINE_BYTES:
        piece = await loop.sock_recv(connection, 64 * 1024)
        if not piece:
            break
        content += piece
    return content


# ------------------------------------------------------------------ the owner's side
def ask(paths: Paths, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the daemon's answer. Blocks.

    Raises:
        NotRunningError: no daemon answers.
        RemoteError: it refuses.
    """
    try:
        with connect(paths.socket, BOUND_S) as connection:
            connection.sendall(json.dumps(question).encode() + b"\n")
            with connection.makefile("rb") as file:
                reply = json.loads(file.readline(MAX_LINE_BYTES))
    except (OSError, ValueError) as error:
        raise _nobody_there(paths) from error
    if "error" in reply:
        raise RemoteError(reply["error"], reply["exit_code"])
    answer: dict[str, Any] = reply["ok"]
    return answer


def _nobody_there(paths: Paths) -> NotRunningError:
    """Say what to do first: without a pairing no daemon would run."""
    if paths.pairing.exists():
        sentence = "No execd is running for this user."
        return NotRunningError(sentence, advice="Run: execd run")
    sentence = f"No execd is running for this user. {why_none(paths)}"
    return NotRunningError(sentence, advice="Pair it: execd pair HUB; then: execd run")
