"""GitHub: webhooks in, comments out, and a sandbox that plays GitHub.

This module is what the entry point names. It is light: whatever weighs is imported by the
functions below when the hub asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from upright.api import Connector, ConnectorType, hookimpl
from upright_github.settings import GitHubSettings


def _make(source: str, settings: GitHubSettings) -> Connector:
    from upright_github.connector import GitHubConnector  # noqa: PLC0415  # aiohttp: only for a named source

    return GitHubConnector(source, settings)


@hookimpl
def upright_connectors() -> Iterable[ConnectorType]:
    """Offer the kind ``github``."""
    summary = "GitHub: webhooks or polling in, comments and reviews out"
    return (ConnectorType(kind="github", summary=summary, settings=GitHubSettings, make=_make),)


@hookimpl
def upright_commands(group: object) -> None:
    """Add ``github`` to the click group ``upright sandbox``."""
    from upright_github.sandbox.command import add_to  # noqa: PLC0415  # click: only for this command

    add_to(group)
