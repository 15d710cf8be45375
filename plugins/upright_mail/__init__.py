"""Mail: IMAP in, SMTP replies out, in the thread that they answer.

This module is what the entry point names. It is light: whatever weighs is imported by the
functions below when the hub asks for it, by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from pkgutil import resolve_name

from upright.api import Connector, ConnectorType, hookimpl
from upright_mail.settings import MailSettings


def _make(source: str, settings: MailSettings) -> Connector:
    made: Connector = resolve_name("upright_mail.connector:MailConnector")(source, settings)
    return made


@hookimpl
def upright_connectors() -> Iterable[ConnectorType]:
    """Offer the kind ``mail``."""
    summary = "Mail: IMAP in, replies by SMTP"
    return (ConnectorType(kind="mail", summary=summary, settings=MailSettings, make=_make),)
