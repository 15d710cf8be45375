"""Events: the trail that each stop of the one-way flow leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from upright.store.tables import EVENT
from upright.store.unit import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What an event is about: any of these ids."""

    trigger_id: str | None = None
    session_id: str | None = None
    work_id: str | None = None
    turn_id: str | None = None
    job_id: str | None = None
    outbox_id: str | None = None


Stop = tuple[str, About, Mapping[str, object]]
"""The name of a stop, what it is about, and what else there is to say."""

_ADD: Final = EVENT.insert()


def record(u: Unit, stop: str, about: About, data: Mapping[str, object] | None = None) -> None:
    """Leave a trace of one stop, in the transaction that did the work."""
    record_all(u, (stop, about, data or {}))


def record_all(u: Unit, *stops: Stop) -> None:
    """Leave traces of several stops, in their order."""
    rows = [
        {
            "at_ms": u.now_ms,
            "stop": stop,
            "trigger_id": about.trigger_id,
            "session_id": about.session_id,
            "work_id": about.work_id,
            "turn_id": about.turn_id,
            "job_id": about.job_id,
            "outbox_id": about.outbox_id,
            "data_json": json.dumps(data, ensure_ascii=False, separators=(",", ":")),
        }
        for stop, about, data in stops
    ]
    u.c.execute(_ADD, rows)
