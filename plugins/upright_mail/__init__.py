"""Mail: IMAP in, SMTP replies out, in the thread that they answer.

This module is what the entry point names. It is light: whatever weighs is imported by the
functions below when the hub asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from upright.api import Connector, ConnectorType, hookimpl
from upright_mail.settings import MailSettings


def _make(source: str, settings: MailSettings) -> Connector:
    from upright_mail.connector import MailConnector  # noqa: PLC0415  # imapclient, lxml: only for a named source

    return MailConnector(source, settings)


@hookimpl
def upright_connectors() -> Iterable[ConnectorType]:
    """Offer the kind ``mail``."""
    summary = "Mail: IMAP in, replies by SMTP"
    return (ConnectorType(kind="mail", summary=summary, settings=MailSettings, make=_make),)
