"""Line: one IMAP connection, used from a thread of its own under our own watchdog.

imapclient blocks, so each call runs in the line's one thread. A socket's time-out bounds a silent
peer; the watchdog also bounds one that goes on talking for ever: it shuts the socket, and the
thread comes back.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

from imapclient import IMAPClient, SocketTimeout
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, LoginError

from upright.api import ConnectorAuthFailedError, ConnectorNotReadyError, Secret
from upright_mail.imap import Imap
from upright_mail.settings import MailSettings, Tls

T = TypeVar("T")
PORTS: Final = {Tls.IMPLICIT: 993, Tls.STARTTLS: 143, Tls.NONE: 143}  # RFC 8314, 9051
GRACE: Final = 1.25  # the socket's own time-out comes first
_UNREADABLE: Final = (LookupError, ValueError, TypeError, AttributeError, AssertionError)
"""What imapclient raises where a server says yes and leaves out what was asked."""
_LATER: Final = ("[UNAVAILABLE]", "[INUSE]", "[LIMIT]", "[SERVERBUG]")  # RFC 5530


class Line:
    """A connection. After any error it is closed: make another one."""

    def __init__(self, settings: MailSettings, password: Secret) -> None:
        self._settings = settings
        self._password = password
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="imap")
        self._client: Imap | None = None
        self._was_cut = False

    async def open(self) -> None:
        """Connect and sign in.

        Raises:
            ConnectorAuthFailedError: the password is refused.
            ConnectorNotReadyError: the server can't be reached, or asks for patience.
        """
        await self._run(self._connect, within_s=2 * self._settings.timeout_s)

    async def call(self, work: Callable[[Imap], T], *, more_s: float = 0.0) -> T:
        """Do some work in the thread; *more_s* is how long it may wait beyond one answer.

        Raises:
            ConnectorNotReadyError: the server is gone, or refuses what was asked.
        """
        client = self._client
        if client is None:
            raise ConnectorNotReadyError("The line is closed")
        return await self._run(lambda: work(client), within_s=self._settings.timeout_s + more_s)

    async def close(self) -> None:
        """Sign out if that is quick; then close, whatever the thread is at."""
        client = self._client
        if client is not None:
            with suppress(ConnectorNotReadyError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await self.call(lambda open_: open_.logout())
        self.cut()

    def cut(self) -> None:
        """Cut the line: whoever waits on it in the thread comes back, and closes it there."""
        client, self._client, self._was_cut = self._client, None, True
        if client is not None:
            with suppress(OSError):
                client.socket().shutdown(socket.SHUT_RDWR)
            with suppress(RuntimeError):  # the thread was told to end before
                self._thread.submit(_closed, client)
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], T], *, within_s: float) -> T:
        host = self._settings.imap.host
        try:
            async with asyncio.timeout(within_s * GRACE):
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except TimeoutError as error:  # the watchdog's, or the socket's
            self.cut()
            reason = f"{host} gave no answer within {within_s:g} s"
            raise ConnectorNotReadyError(reason) from error
        except LoginError as error:
            self.cut()
            raise _refused(host, error) from error
        except (IMAPClientError, OSError, EOFError) as error:
            self.cut()
            reason = f"{host}: {str(error)[:300] or type(error).__name__}"
            raise ConnectorNotReadyError(reason) from error
        except _UNREADABLE as error:
            self.cut()
            reason = f"{host} answered what can't be read: {type(error).__name__}"
            raise ConnectorNotReadyError(reason) from error
        except RuntimeError as error:  # the thread was told to end
            raise ConnectorNotReadyError("The line is closed") from error
        except asyncio.CancelledError:
            self.cut()
            raise

    def _connect(self) -> None:
        server, timeout_s = self._settings.imap, self._settings.timeout_s
        safe = ssl.create_default_context() if server.tls is not Tls.NONE else None
        client: Imap = IMAPClient(
            server.host,
            port=server.port or PORTS[server.tls],
            ssl=server.tls is Tls.IMPLICIT,
            ssl_context=safe,
            timeout=SocketTimeout(connect=timeout_s, read=timeout_s),
        )
        client.normalise_times = False  # aware times, as the server gives them
        if self._was_cut:  # while it was dialled
            _closed(client)
            raise OSError("the line was cut")
        self._client = client
        if server.tls is Tls.STARTTLS:
            client.starttls(safe)
        client.login(self._settings.user, self._password.reveal())


def _closed(client: Imap) -> None:
    with suppress(OSError, IMAPClientError):
        client.shutdown()


def _refused(host: str, error: Exception) -> ConnectorAuthFailedError | ConnectorNotReadyError:
    said = str(error)[:300]
    broke = isinstance(error.__context__, IMAPClientAbortError)  # the line, not the password
    if broke or any(code in said for code in _LATER):
        return ConnectorNotReadyError(f"{host} lets nobody in now: {said}")
    return ConnectorAuthFailedError(f"{host} refuses the user or the password: {said}")
