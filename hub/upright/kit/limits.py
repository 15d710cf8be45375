"""Limits: what the services allow, as they say it themselves; one table, each row with its source.

Those of chat; a row comes with the connector that it binds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit: the number, in the unit; where the service says so."""

    value: float
    unit: str
    source: str

    @property
    def whole(self) -> int:
        """Return it as a whole number."""
        return int(self.value)


LIMITS: Final[Mapping[str, Limit]] = {
    "slack.text": Limit(
        value=4_000, unit="characters", source="docs.slack.dev, chat.postMessage: keep to 4,000"
    ),
    "slack.rate": Limit(
        value=1, unit="messages a second and channel", source="docs.slack.dev, Rate limits"
    ),
    "slack.answer": Limit(
        value=3, unit="seconds", source="docs.slack.dev, Events API: respond within three seconds"
    ),
    "slack.window": Limit(
        value=300, unit="seconds", source="docs.slack.dev, Verifying requests: five minutes"
    ),
    "slack.body": Limit(
        value=1_048_576, unit="bytes", source="our own cap: events carry one message each"
    ),
    "matrix.event": Limit(
        value=65_536, unit="bytes", source="spec.matrix.org, Size limits: a whole event"
    ),
    "matrix.rate": Limit(
        value=0.2, unit="messages a second", source="Synapse, rc_message: per_second"
    ),
    "matrix.burst": Limit(value=10, unit="messages", source="Synapse, rc_message: burst_count"),
}
