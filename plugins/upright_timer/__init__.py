"""Timers: lines of cron, intervals and single moments become triggers, each fired once.

This module is what the entry point names.
"""

from __future__ import annotations

from collections.abc import Iterable

from upright.api import ConnectorType, hookimpl
from upright_timer.connector import TimerConnector
from upright_timer.settings import TimerSettings


@hookimpl
def upright_connectors() -> Iterable[ConnectorType]:
    """Offer the kind ``timer``."""
    summary = "Timers: cron lines, intervals and single moments, with zones and missed runs"
    return (
        ConnectorType(kind="timer", summary=summary, settings=TimerSettings, make=TimerConnector),
    )
