"""Retention: how long each kind of thing is kept, and what is said of it afterwards (A5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Ages in days, from when a thing was settled; ``output_bytes`` is all output's. 0: for ever.

    ``raw``: payloads. ``transcript``: entries of ended sessions. ``output``: what ended jobs
    printed. ``snapshots``: what was read in parts. ``dedupe``: the keys that refuse a second
    delivery, which outlive all else (B2.2). ``audit``: who did what.
    """

    raw: int = 30
    transcript: int = 90
    output: int = 30
    output_bytes: int = 2 * 1024**3
    events: int = 180
    snapshots: int = 7
    receipts: int = 400
    ledger: int = 400
    dedupe: int = 0
    audit: int = 400


def before_ms(now_ms: int, days: int) -> int | None:
    """Return the time before which a thing is too old; None when it is kept for ever."""
    return now_ms - days * DAY_MS if days > 0 else None


def pruned_on(at_ms: int | None) -> str:
    """Say when a thing was pruned, by the UTC date; empty when it is still there."""
    if at_ms is None:
        return ""
    return f"pruned on {datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d}"
