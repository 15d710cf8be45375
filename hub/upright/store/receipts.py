"""Receipts: by the ids under which our effects became visible, our own output is known (B1.5)."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from upright.store.tables import RECEIPT

# statements of the hot path are made once: building one costs more than running it
_OURS: Final = sa.select(RECEIPT.c.native_id).where(
    RECEIPT.c.source == sa.bindparam("source"),
    RECEIPT.c.native_id.in_(sa.bindparam("natives", expanding=True)),
)


def keep(c: sa.Connection, source: str, outbox: str, provider_id: str) -> None:
    """Keep the ids of a receipt; a text that was sent in parts has several, joined by commas."""
    parts = set(filter(None, provider_id.split(",")))
    known = ours(c, source, parts)
    rows = [
        {"source": source, "native_id": part, "outbox_id": outbox} for part in sorted(parts - known)
    ]
    if rows:
        c.execute(RECEIPT.insert(), rows)


def ours(c: sa.Connection, source: str, natives: set[str]) -> set[str]:
    """Return those of *natives*, ids of a source, that are ours: each is found by the index."""
    if not natives:
        return set()
    return set(c.scalars(_OURS, {"source": source, "natives": sorted(natives)}))
