"""Assembly: a stream's parts put together to one answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from upright.core.transcript import ToolCall
from upright.engine.ports import Usage
from upright.llm.quirks import CallPart, Part, whole


@dataclass(slots=True, kw_only=True)
class _Slot:
    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class Assembly:
    """Takes the parts of one stream in order; ``answer`` is what they make.

    A stream is ``complete`` when a reason to finish came, or the counts that end it: without
    either it was cut, however cleanly the connection closed. The reason itself is not trusted:
    servers say ``stop`` beside calls, and ``tool_calls`` without any.
    """

    def __init__(self) -> None:
        self.model = ""
        self.usage: Usage | None = None
        self.chosen = False
        self.complete = False
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._slots: list[_Slot] = []

    def add(self, part: Part) -> None:
        """Take the next part."""
        self.model = part.model or self.model
        if part.usage is not None:
            self.usage = part.usage
        self.chosen = self.chosen or part.chosen
        self.complete = (
            self.complete or bool(part.finish) or (part.usage is not None and not part.chosen)
        )
        self._text.append(part.text)
        self._refusal.append(part.refusal)
        for call in part.calls:
            self._add_call(call)

    def text(self) -> str:
        """Return the text; a refusal where there was nothing else."""
        return whole(self._text) or whole(self._refusal)

    def calls(self, used: Collection[str]) -> tuple[ToolCall, ...]:
        """Return the calls, each with an id that is neither in *used* nor twice among them."""
        taken, made = set(used), []
        for slot in self._slots:
            call_id = slot.id if slot.id and slot.id not in taken else _fresh(taken)
            taken.add(call_id)
            arguments = whole(slot.arguments) or "{}"
            made.append(ToolCall(id=call_id, name=slot.name, arguments=arguments))
        return tuple(made)

    def _add_call(self, part: CallPart) -> None:
        slot = self._slot(part)
        slot.id = slot.id or part.id
        slot.name = slot.name or part.name
        slot.arguments.append(part.arguments)

    def _slot(self, part: CallPart) -> _Slot:
        for slot in reversed(self._slots):
            same_place = part.index is not None and slot.index == part.index
            if same_place and not (part.id and part.name and slot.id and part.id != slot.id):
                return slot
            if part.index is None and not part.name and part.id in {"", slot.id}:
                return slot
        self._slots.append(_Slot(index=part.index))
        return self._slots[-1]


def _fresh(taken: Collection[str]) -> str:
    """Return the first free id of a row; the same transcript gives the same id."""
    number = len(taken)
    while f"made_{number}" in taken:
        number += 1
    return f"made_{number}"
