"""Outcome: what a shim's final record means in the protocol's words."""

from __future__ import annotations

from typing import Final

from upright_execd.shim.records import Pairs
from upright_wire.command import Ending, Omitted, Outcome, Process, Started, Totals

SHIM_DIED: Final = "shim_died"
HOST_REBOOT: Final = "host_reboot"
RECEIPT_DAMAGED: Final = "receipt_damaged"


def from_pairs(pairs: Pairs, env_dropped: tuple[str, ...]) -> Outcome:
    """Translate a final record.

    Raises:
        KeyError, ValueError, WireError: the record isn't one that a shim of this version writes.
    """
    table = dict(pairs)
    return Outcome(
        ending=Ending(table["ending"]),
        started=Started(table["started"]),
        number=_number(table, "number"),
        stdout=_totals(table, "out"),
        stderr=_totals(table, "err"),
        survivors=tuple(_process(value) for key, value in pairs if key == "survivor"),
        pipe_held=table.get("pipe_held") == "1",
        env_dropped=env_dropped,
        elapsed_ms=_number(table, "elapsed_ms") or 0,
        cpu_ms=_number(table, "cpu_ms"),
        peak_memory_bytes=_number(table, "peak_memory_bytes"),
    )


def unstarted(ending: Ending, *, number: int | None = None, text: str | None = None) -> Outcome:
    """Return the outcome of a command whose program never ran."""
    return Outcome(ending=ending, started=Started.NO, number=number, text=text)


def _totals(table: dict[str, str], name: str) -> Totals:
    if f"{name}.total" not in table:
        return Totals()
    total, head, kept = (int(table[f"{name}.{part}"]) for part in ("total", "head", "kept"))
    gap = total - head - kept
    omitted = (Omitted(offset=head, count=gap),) if gap else ()
    return Totals(bytes=total, sha256=table[f"{name}.sha256"], omitted=omitted)


def _number(table: dict[str, str], key: str) -> int | None:
    return int(table[key]) if key in table else None


def _process(value: str) -> Process:
    pid, _, name = value.partition(" ")
    return Process(pid=int(pid), name=name)
