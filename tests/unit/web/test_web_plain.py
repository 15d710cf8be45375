"""Plain: how values look as JSON, and what must never get there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import orjson
import pytest

from upright.api import ActorKind, Secret
from upright.web.plain import encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    key: bytes
    at: datetime
    kind: ActorKind
    names: frozenset[str]


def test_values_of_the_hub_have_a_plain_form() -> None:
    shown = Shown(
        key=b"\x01\xff",
        at=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        kind=ActorKind.BOT,
        names=frozenset({"b", "a"}),
    )
    assert orjson.loads(encode({"it": shown})) == {
        "it": {"key": "01ff", "at": 1000, "kind": "bot", "names": ["a", "b"]}
    }


def test_a_secret_is_never_written() -> None:
    with pytest.raises(TypeError):
        encode({"token": Secret("hush")})
