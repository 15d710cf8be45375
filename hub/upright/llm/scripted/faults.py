"""Faults: what can be made to go wrong with the next calls, as real endpoints do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

MAX_SILENCE_S: Final = 3_600.0


class FaultKind(StrEnum):
    """What goes wrong."""

    RATE_LIMITED = "rate_limited"  # 429; with retry_after_s, says so
    QUOTA = "quota"  # 429 that waiting won't cure
    UNAUTHORIZED = "unauthorized"  # 401
    BAD_REQUEST = "bad_request"  # 400
    NOT_FOUND = "not_found"  # 404
    SERVER_ERROR = "server_error"  # 500
    STREAM_ERROR = "stream_error"  # an error told inside the stream
    GARBAGE = "garbage"  # a chunk that is no JSON
    CUT = "cut"  # the connection breaks after after_chunks
    CLEAN_CUT = "clean_cut"  # the body ends in good order, too early
    SILENCE = "silence"  # nothing for seconds, after after_chunks
    SPLIT_UTF8 = "split_utf8"  # bytes come torn inside of characters
    MISSING_IDS = "missing_ids"  # calls without an id
    SAME_IDS = "same_ids"  # every call has the same id, in every answer
    WRONG_FINISH = "wrong_finish"  # "stop" beside calls, "tool_calls" without
    EMPTY_CHOICES = "empty_choices"  # no choice in any chunk
    REFUSAL = "refusal"  # the model refuses
    INVENTED_TOOL = "invented_tool"  # a call of a tool that was not offered
    BAD_ARGUMENTS = "bad_arguments"  # arguments cut in the middle
    NO_USAGE = "no_usage"  # no counts at the end
    PROSE = "prose"  # words, whatever shape was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault, for the next ``calls`` requests (of ``agent``, when that is said)."""

    kind: FaultKind
    calls: int = 1
    agent: str = ""
    retry_after_s: float | None = None
    after_chunks: int = 1
    seconds: float = 0.0


@dataclass(slots=True)
class Faults:
    """What is still to go wrong, in the order in which it was asked for; one fault a call."""

    _waiting: list[Fault] = field(default_factory=list)

    def add(self, faults: Sequence[Fault]) -> None:
        """Ask for faults."""
        self._waiting += faults

    def clear(self) -> None:
        """Let nothing go wrong any more."""
        self._waiting.clear()

    def pending(self) -> int:
        """Return how many calls will still meet a fault."""
        return sum(fault.calls for fault in self._waiting)

    def take(self, agent: str) -> Fault | None:
        """Take the fault of this call."""
        for place, fault in enumerate(self._waiting):
            if fault.agent in {"", agent}:
                left = replace(fault, calls=fault.calls - 1)
                self._waiting[place : place + 1] = [left] if left.calls > 0 else []
                return fault
        return None


def parse_faults(value: object) -> list[Fault]:
    """Read one fault or a list of them, as POSTed; ValueError says what is wrong."""
    rows: list[Any] = value if isinstance(value, list) else [value]
    return [_fault(row) for row in rows]


def _fault(row: Mapping[str, Any]) -> Fault:
    try:
        fault = Fault(**{**row, "kind": FaultKind(row["kind"])})
        return replace(fault, seconds=min(float(fault.seconds), MAX_SILENCE_S))
    except (KeyError, TypeError) as error:
        reason = f"a fault is an object with a kind: {error}"
        raise ValueError(reason) from error
