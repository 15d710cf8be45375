"""Frames: an answer as the chat protocol's bytes, whole or streamed, and bent by a fault."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from upright.llm.scripted.cache import Hit, tokens
from upright.llm.scripted.decide import Answer, MadeCall
from upright.llm.scripted.faults import Fault, FaultKind

TEXT_PIECE_CHARS: Final = 24
ARGUMENTS_PIECE_CHARS: Final = 64
REFUSED: Final = "I can't help with that."
DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One answer and what the protocol says around it."""

    id: str
    model: str
    answer: Answer
    hit: Hit
    fault: FaultKind | None = None
    lacks: Collection[str] = ()

    def usage(self) -> dict[str, Any]:
        """Return the counts, the cached part in them."""
        output = tokens(len(self.answer.text.encode("utf-8")))
        output += sum(tokens(len(c.name) + len(c.arguments.encode())) for c in self.answer.calls)
        said = {
            "prompt_tokens": self.hit.prompt_tokens,
            "completion_tokens": output,
            "total_tokens": self.hit.prompt_tokens + output,
        }
        if "cached" in self.lacks:
            return said
        return {**said, "prompt_tokens_details": {"cached_tokens": self.hit.cached_tokens}}

    @property
    def counts(self) -> bool:
        """Whether the answer ends with its counts."""
        return self.fault is not FaultKind.NO_USAGE and "usage" not in self.lacks

    def finish(self) -> str:
        """Return the reason to finish; the other one, when that is the fault."""
        right = bool(self.answer.calls) != (self.fault is FaultKind.WRONG_FINISH)
        return "tool_calls" if right else "stop"


def bent(answer: Answer, fault: Fault | None) -> Answer:
    """Return the answer as a fault in it makes it."""
    match fault.kind if fault else None:
        case FaultKind.REFUSAL | FaultKind.PROSE as kind:
            said = "Well, that depends." if kind is FaultKind.PROSE else ""
            return replace(answer, text=said, calls=())
        case FaultKind.INVENTED_TOOL:
            made = MadeCall(
                id="call_invented", name="browse_web", arguments='{"url":"about:blank"}'
            )
            return replace(answer, text="", calls=(made,))
        case FaultKind.BAD_ARGUMENTS:
            calls = [
                replace(c, arguments=c.arguments[: len(c.arguments) // 2]) for c in answer.calls
            ]
            return replace(answer, calls=tuple(calls))
        case FaultKind.MISSING_IDS:
            return replace(answer, calls=tuple(replace(c, id="") for c in answer.calls))
        case FaultKind.SAME_IDS:
            return replace(answer, calls=tuple(replace(c, id="call_1") for c in answer.calls))
        case _:
            return answer


def whole(completion: Completion) -> dict[str, Any]:
    """Return the body of an answer that is not streamed."""
    answer = completion.answer
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [_whole_call(call) for call in answer.calls]
    if completion.fault is FaultKind.REFUSAL:
        message["refusal"] = REFUSED
    choice = {"index": 0, "message": message, "finish_reason": completion.finish()}
    body = _envelope(completion, "chat.completion")
    body["choices"] = [] if completion.fault is FaultKind.EMPTY_CHOICES else [choice]
    if completion.counts:
        body["usage"] = completion.usage()
    return body


def streamed(completion: Completion, *, with_usage: bool) -> Iterator[bytes]:
    """Yield the frames of a streamed answer, one chunk each; the last is the end mark."""
    for delta in _deltas(completion):
        yield _frame(completion, _choice(delta, None))
    yield _frame(completion, _choice({}, completion.finish()))
    if with_usage and completion.counts:
        yield _data({**_envelope(completion), "choices": [], "usage": completion.usage()})
    yield DONE


def torn(frame: bytes) -> Sequence[bytes]:
    """Cut a frame inside each of its characters that take more than one byte."""
    cuts = [at for at in range(1, len(frame)) if frame[at] & 0xC0 == 0x80]
    return [frame[a:b] for a, b in zip([0, *cuts], [*cuts, len(frame)], strict=True)]


def error_frame(message: str, kind: str) -> bytes:
    """Return an error told inside a stream."""
    return _data({"error": {"message": message, "type": kind, "code": None}})


def _deltas(completion: Completion) -> Iterator[Mapping[str, Any]]:
    answer = completion.answer
    yield {"role": "assistant", "content": "" if answer.text else None}
    if completion.fault is FaultKind.REFUSAL:
        yield {"refusal": REFUSED}
    for piece in _pieces(answer.text, TEXT_PIECE_CHARS):
        yield {"content": piece}
    for index, call in enumerate(answer.calls):
        head = {
            "index": index,
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield {"tool_calls": [{**head, "id": call.id} if call.id else head]}
        for piece in _pieces(call.arguments, ARGUMENTS_PIECE_CHARS):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str, size: int) -> Iterator[str]:
    yield from (text[at : at + size] for at in range(0, len(text), size))


def _choice(delta: Mapping[str, Any], finish: str | None) -> list[dict[str, Any]]:
    return [{"index": 0, "delta": delta, "finish_reason": finish}]


def _frame(completion: Completion, choices: list[dict[str, Any]]) -> bytes:
    shown = [] if completion.fault is FaultKind.EMPTY_CHOICES else choices
    return _data({**_envelope(completion), "choices": shown})


def _envelope(completion: Completion, kind: str = "chat.completion.chunk") -> dict[str, Any]:
    return {"id": completion.id, "object": kind, "created": 0, "model": completion.model}


def _whole_call(call: MadeCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    made: dict[str, Any] = {"type": "function", "function": function}
    return {**made, "id": call.id} if call.id else made


def _data(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode("utf-8") + b"\n\n"
