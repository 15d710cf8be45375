"""Telling: what the hub hears of a command's bytes, while its spool is there and after it went."""

from __future__ import annotations

from pathlib import Path

from upright_execd.ports import Piece
from upright_execd.spool import reading
from upright_wire.command import Outcome, Stream, Totals


def totals(outcome: Outcome, stream: Stream) -> Totals:
    """Return a stream's part of the outcome."""
    return outcome.stderr if stream is Stream.STDERR else outcome.stdout


def ends(folder: Path, outcome: Outcome | None) -> tuple[int, int]:
    """Return where stdout and stderr end for now."""
    if outcome is not None:
        return outcome.stdout.bytes, outcome.stderr.bytes
    out, err = (reading.stored_bytes(folder, s) for s in (Stream.STDOUT, Stream.STDERR))
    return out, err


def gone(outcome: Outcome | None, stream: Stream, offset: int) -> Piece:
    """Return what is left of a stream when its spool is not there any more: a count."""
    total = 0 if outcome is None else totals(outcome, stream).bytes
    return Piece(omitted=max(0, total - offset), end=True)
