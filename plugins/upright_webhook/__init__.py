"""Webhooks of any service: verified by a preset, mapped by settings, told once.

This module is what the entry point names.
"""

from __future__ import annotations

from collections.abc import Iterable

from upright.api import ConnectorType, hookimpl
from upright_webhook.connector import WebhookConnector
from upright_webhook.settings import WebhookSettings


@hookimpl
def upright_connectors() -> Iterable[ConnectorType]:
    """Offer the kind ``webhook``."""
    summary = "Webhooks of any service: signature presets, a mapping, answers"
    return (
        ConnectorType(
            kind="webhook", summary=summary, settings=WebhookSettings, make=WebhookConnector
        ),
    )
