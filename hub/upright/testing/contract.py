"""The contract of connectors: tests that the author of a connector inherits (C0.6).

Write a class ``TestMine(ConnectorContract)`` with the one hook ``outside``; pytest does the rest.
What a connector can't do is skipped, by the reason that its :class:`Outside` gives.
"""

from __future__ import annotations

from upright.testing.hearing import HearingContract
from upright.testing.restarts import RestartContract
from upright.testing.sending import SendingContract
from upright.testing.webhooks import WebhookContract

__all__ = ["ConnectorContract"]


class ConnectorContract(HearingContract, RestartContract, WebhookContract, SendingContract):
    """All of it: hearing, restarts, webhooks, sending."""
