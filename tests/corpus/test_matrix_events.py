"""Matrix's example events: no exception leaves the reader, and the kinds are known."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from upright.api import TriggerRejectedError
from upright_matrix.events import What, read
from upright_matrix.rooms import Room
from upright_matrix.timeline import read_sync

DATA: Final = Path(__file__).parents[3] / "shared" / "data" / "matrix"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="corpus: ../shared/data is not there")


def test_every_event_is_read_or_refused() -> None:
    told = Counter[str]()
    paths = sorted(DATA.glob("*.json"))
    for path in paths:
        try:
            told[read(json.loads(path.read_bytes())).what] += 1
        except TriggerRejectedError:
            told["refused"] += 1
    assert sum(told.values()) == len(paths)
    assert told[What.SAID] >= 5  # text, notice, image, file, audio


def test_every_event_can_stand_in_a_sync() -> None:
    events = [json.loads(path.read_bytes()) for path in sorted(DATA.glob("*.json"))]
    room = {"timeline": {"events": events, "limited": True}, "state": {"events": events}}
    synced = read_sync({"next_batch": "s1", "rooms": {"join": {"!r:example.org": room}}})
    known = Room(id="!r:example.org")
    known.learn(synced.joined[known.id].state)
    assert known.name
    assert known.power_levels


def test_a_sync_of_another_shape_tells_nothing() -> None:
    shapes: tuple[dict[str, object], ...] = (
        {},
        {"rooms": []},
        {"rooms": {"join": {"!r:x": []}}, "next_batch": 7},
    )
    for value in shapes:
        assert not any(one.timeline for one in read_sync(value).joined.values())
