"""SMTP: one letter to one address; what the server says tells its fate (RFC 5321)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

import aiosmtplib

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorError,
    PermanentSendError,
    RetryableSendError,
    Secret,
    UnknownSendError,
)
from upright_mail.compose import Letter
from upright_mail.settings import MailSettings, ServerSettings, Tls

PORTS: Final = {Tls.IMPLICIT: 465, Tls.STARTTLS: 587, Tls.NONE: 25}  # RFC 8314, 6409
GREYLISTED_S: Final = 60.0
FAREWELL_S: Final = 2.0
_SIGN_IN: Final = frozenset({530, 534, 535, 538})  # RFC 4954


class Post:
    """Hands letters to our own mail server."""

    def __init__(self, server: ServerSettings, settings: MailSettings, password: Secret) -> None:
        self._server = server
        self._settings = settings
        self._password = password

    async def deliver(self, letter: Letter) -> None:
        """Deliver a letter.

        Raises:
            RetryableSendError: nothing was handed over; the server is gone or says *later*.
            PermanentSendError: the server refuses it for good.
            UnknownSendError: the line broke after the letter was on it.
            ConnectorAuthFailedError: the server refuses our password.
        """
        async with self._signed_in(letter.sender.rpartition("@")[2]) as client:
            await _address(client, letter)
            await _hand_over(client, letter)

    async def check(self) -> None:
        """Sign in and leave; see :meth:`deliver` for what it raises."""
        async with self._signed_in():
            return

    @asynccontextmanager
    async def _signed_in(self, our_host: str | None = None) -> AsyncIterator[aiosmtplib.SMTP]:
        server = self._server
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port or PORTS[server.tls],
            use_tls=server.tls is Tls.IMPLICIT,
            start_tls=server.tls is Tls.STARTTLS,
            timeout=self._settings.timeout_s,
            local_hostname=our_host,
        )
        try:
            with _nothing_sent(server.host):
                await client.connect()
                if client.supports_extension("auth"):
                    await client.login(self._settings.user, self._password.reveal())
            yield client
        finally:
            try:
                with suppress(aiosmtplib.SMTPException, OSError):
                    await client.quit(timeout=FAREWELL_S)
            finally:  # also when nobody waits for the farewell any more
                client.close()


@contextmanager
def _nothing_sent(host: str) -> Iterator[None]:
    """Translate what goes wrong before the letter itself."""
    try:
        yield
    except aiosmtplib.SMTPResponseException as error:
        raise _meaning(error) from error
    except (aiosmtplib.SMTPException, OSError) as error:
        reason = f"{host} can't be reached: {_said(error)}"
        raise RetryableSendError(reason) from error


async def _address(client: aiosmtplib.SMTP, letter: Letter) -> None:
    with _nothing_sent(client.hostname or "the mail server"):
        await client.mail(letter.sender)
        await client.rcpt(letter.recipient)


async def _hand_over(client: aiosmtplib.SMTP, letter: Letter) -> None:
    try:
        await client.data(letter.raw)
    except aiosmtplib.SMTPResponseException as error:
        raise _meaning(error) from error
    except (aiosmtplib.SMTPException, OSError) as error:
        reason = f"The line broke while the mail was handed over: {_said(error)}"
        raise UnknownSendError(reason) from error


def _meaning(error: aiosmtplib.SMTPResponseException) -> ConnectorError:
    """Return what a refusal means; nothing was accepted."""
    said = f"{error.code} {error.message}"[:500]
    if error.code in _SIGN_IN:
        return ConnectorAuthFailedError(f"The mail server refuses our password: {said}")
    if 500 <= error.code < 600:
        return PermanentSendError(f"The mail server refuses it: {said}")
    return RetryableSendError(f"The mail server says later: {said}", after_s=GREYLISTED_S)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
