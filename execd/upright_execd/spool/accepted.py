"""Accepted: what a command's folder says it is, and the receipt that stays when the rest goes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from upright_execd.errors import DamagedError
from upright_wire.command import Outcome
from upright_wire.errors import WireError
from upright_wire.plain import from_plain, to_plain
from upright_wire.spec import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The content of ``spec``. A synced one means: this command was accepted, on this OS boot."""

    command_id: str
    digest: str
    session: str
    lease_epoch: int
    spec: Spec
    os_boot_id: str
    env_dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The content of ``receipt``: how a command ended. ``digest`` is empty for a fence."""

    command_id: str
    digest: str
    outcome: Outcome
    is_acknowledged: bool = False


def encode(record: Accepted | Receipt) -> bytes:
    """Write a record as one line of JSON."""
    return json.dumps(to_plain(record), separators=(",", ":")).encode() + b"\n"


def decode_accepted(content: bytes, where: str) -> Accepted:
    """Read a ``spec``.

    Raises:
        DamagedError: it is something else.
    """
    try:
        return from_plain(Accepted, _table(content))
    except (ValueError, WireError) as error:
        sentence = f"{where} is no record of an accepted command."
        raise DamagedError(sentence) from error


def decode_receipt(content: bytes, where: str) -> Receipt:
    """Read a ``receipt``.

    Raises:
        DamagedError: it is something else.
    """
    try:
        return from_plain(Receipt, _table(content))
    except (ValueError, WireError) as error:
        sentence = f"{where} is no receipt."
        raise DamagedError(sentence) from error


def _table(content: bytes) -> Mapping[str, Any]:
    table: Mapping[str, Any] = json.loads(content)
    return table
