"""Endpoints as rows: what a probe found, and the breaker of each, which a person closes (B16.3)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import sqlalchemy as sa

from upright.store import holds, requests
from upright.store.events import About, record
from upright.store.plain import Plain, listed
from upright.store.tables import ENDPOINT
from upright.store.unit import Connection, Unit

_READ: Final = sa.select(ENDPOINT).where(ENDPOINT.c.id == sa.bindparam("endpoint"))
REF: Final = "endpoint:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of an endpoint. ``can`` maps a capability to whether it is there."""

    id: str
    base_url: str
    can: Mapping[str, bool] = field(default_factory=dict)
    probed_at_ms: int | None = None
    held_code: str = ""
    held_reason: str = ""
    held_at_ms: int | None = None


def read(c: Connection, endpoint: str) -> Known | None:
    """Read what is known of an endpoint; None: nothing."""
    row = c.execute(_READ, {"endpoint": endpoint}).one_or_none()
    if row is None:
        return None
    return Known(
        id=row.id,
        base_url=row.base_url,
        can=json.loads(row.probe_json or "{}"),
        probed_at_ms=row.probed_at_ms,
        held_code=row.held_code,
        held_reason=row.held_reason,
        held_at_ms=row.held_at_ms,
    )


def learned(u: Unit, endpoint: str, base_url: str, can: Mapping[str, bool]) -> None:
    """Keep what a probe, or a refusal, has shown; what else is known stays."""
    before = _ensured(u, endpoint, base_url)
    merged = json.dumps({**before.can, **can}, sort_keys=True)
    u.c.execute(
        ENDPOINT.update()
        .where(ENDPOINT.c.id == endpoint)
        .values(probe_json=merged, probed_at_ms=u.now_ms)
    )


def hold(u: Unit, endpoint: str, base_url: str, *, code: str, reason: str) -> None:
    """Open an endpoint's breaker: no more calls, and one question to people (B16.3)."""
    before = _ensured(u, endpoint, base_url)
    if before.held_at_ms is not None:
        return
    u.c.execute(
        ENDPOINT.update()
        .where(ENDPOINT.c.id == endpoint)
        .values(held_code=code, held_reason=reason[:500], held_at_ms=u.now_ms)
    )
    record(u, "model.held", About(), {"endpoint": base_url, "code": code, "reason": reason[:500]})
    prompt = (
        f"The model at {base_url} can't be used: {reason[:300]}. No more calls are made to it, and "
        "work waits. Mend it, then answer yes, or: upright model retry"
    )
    subject = json.dumps({holds.SUBJECT: f"{REF}{endpoint}"})
    requests.ask(u, requests.Asking(prompt=prompt, subject_json=subject))


def retry(u: Unit, endpoint: str, by: str) -> list[str]:
    """Close a breaker; what it could not do is tried anew. Return the sessions woken."""
    known = read(u.c, endpoint)
    can = {name: has for name, has in known.can.items() if has} if known else {}
    values = {"held_code": "", "held_reason": "", "held_at_ms": None, "probe_json": json.dumps(can)}
    u.c.execute(ENDPOINT.update().where(ENDPOINT.c.id == endpoint).values(**values))
    record(u, "model.retried", About(), {"endpoint": endpoint, "by": by})
    return holds.release(u, f"{REF}{endpoint}")


def retry_all(u: Unit, by: str) -> list[str]:
    """Close every breaker that is open."""
    open_ones = u.c.scalars(sa.select(ENDPOINT.c.id).where(ENDPOINT.c.held_at_ms.is_not(None)))
    return [session for one in list(open_ones) for session in retry(u, one, by)]


def listing(c: Connection) -> list[Plain]:
    """List every endpoint that is known."""
    return listed(c, sa.select(ENDPOINT).order_by(ENDPOINT.c.base_url, ENDPOINT.c.id))


def _ensured(u: Unit, endpoint: str, base_url: str) -> Known:
    found = read(u.c, endpoint)
    if found is not None:
        return found
    u.c.execute(ENDPOINT.insert().values(id=endpoint, base_url=base_url, probe_json=""))
    return Known(id=endpoint, base_url=base_url)
