"""Slack: Socket Mode or events by HTTP in, answers out, and a sandbox that plays Slack.

This module is what the entry point names. It is light: whatever weighs is imported by the
functions below when the hub asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from upright.api import Connector, ConnectorType, hookimpl
from upright_slack.settings import SlackSettings


def _make(source: str, settings: SlackSettings) -> Connector:
    module = import_module("upright_slack.connector")  # aiohttp: only for a named source
    made: Connector = module.SlackConnector(source, settings)
    return made


@hookimpl
def upright_connectors() -> Iterable[ConnectorType]:
    """Offer the kind ``slack``."""
    summary = "Slack: Socket Mode or events by HTTP in, answers out, in the thread"
    return (ConnectorType(kind="slack", summary=summary, settings=SlackSettings, make=_make),)


@hookimpl
def upright_commands(group: object) -> None:
    """Add ``slack`` to the click group ``upright sandbox``."""
    import_module("upright_slack.sandbox.command").add_to(group)  # click: only for this command
