"""Calendars: CalDAV and feeds in, what starts and what changes out, and events made once.

This module is what the entry point names. It is light: whatever weighs is imported when the hub
makes a source.
"""

from __future__ import annotations

from collections.abc import Iterable
from pkgutil import resolve_name

from upright.api import Connector, ConnectorType, hookimpl
from upright_calendar.settings import CalendarSettings


def _make(source: str, settings: CalendarSettings) -> Connector:
    connector: Connector = resolve_name("upright_calendar.connector:CalendarConnector")(
        source, settings
    )
    return connector


@hookimpl
def upright_connectors() -> Iterable[ConnectorType]:
    """Offer the kind ``calendar``."""
    summary = "Calendars by CalDAV or as feeds: changes, invitations, reminders, conflicts"
    return (ConnectorType(kind="calendar", summary=summary, settings=CalendarSettings, make=_make),)
