"""Codec: the values of the core as JSON text in columns, and back."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from pydantic import TypeAdapter

from upright.api import Code, Destination, Trigger
from upright.core.mandate import Mandate
from upright.core.work import Evidence, PlanStep

T = TypeVar("T")


class Codec(Generic[T]):
    """Writes one type as compact JSON text and reads it back, checked."""

    def __init__(self, adapter: TypeAdapter[T]) -> None:
        self._adapter = adapter

    def dump(self, value: T, *, without: set[str] | None = None) -> str:
        """Write *value*, *without* some of its fields that have a default."""
        return self._adapter.dump_json(value, exclude=without).decode()

    def load(self, text: str) -> T:
        """Read what :meth:`dump` wrote; pydantic's ValidationError when it is something else."""
        return self._adapter.validate_json(text)


_RAW: Final = {"raw"}
_TRIGGER: Final = Codec[Trigger](TypeAdapter(Trigger))
MANDATE: Final = Codec[Mandate](TypeAdapter(Mandate))
DESTINATION: Final = Codec[Destination | None](TypeAdapter(Destination | None))
CODE: Final = Codec[Code | None](TypeAdapter(Code | None))
PLAN: Final = Codec[tuple[PlanStep, ...]](TypeAdapter(tuple[PlanStep, ...]))
EVIDENCE: Final = Codec[tuple[Evidence, ...]](TypeAdapter(tuple[Evidence, ...]))
STRINGS: Final = Codec[tuple[str, ...]](TypeAdapter(tuple[str, ...]))


def dump_trigger(trigger: Trigger) -> str:
    """Write a trigger; its raw bytes are kept apart."""
    return _TRIGGER.dump(trigger, without=_RAW)


def load_trigger(text: str) -> Trigger:
    """Read a trigger, without its raw bytes."""
    return _TRIGGER.load(text)
