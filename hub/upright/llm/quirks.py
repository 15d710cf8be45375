"""Quirks: what endpoints really send in a chunk, read leniently into one plain form.

The client builds its objects without checking them, so any field may be None or missing. Seen in
the field: chunks without choices, tool calls without index or id, an id repeated in every delta,
surrogate pairs torn over two chunks, cached tokens under DeepSeek's own name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from upright.engine.ports import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPart:
    """A piece of a tool call; ``index`` is None where the endpoint gave none."""

    index: int | None
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one chunk said. ``chosen``: it had a choice at all; ``finish``: empty until the end."""

    model: str = ""
    chosen: bool = False
    text: str = ""
    refusal: str = ""
    calls: tuple[CallPart, ...] = ()
    finish: str = ""
    usage: Usage | None = None


def read_chunk(chunk: object) -> Part:
    """Read a ``ChatCompletionChunk`` of the client, whatever is missing in it."""
    usage = _usage(_get(chunk, "usage"))
    model = _text(chunk, "model")
    choices = _get(chunk, "choices")
    if not isinstance(choices, list) or not choices:
        return Part(model=model, usage=usage)
    choice = choices[0]
    delta = _get(choice, "delta")
    calls = _get(delta, "tool_calls")
    return Part(
        model=model,
        chosen=True,
        text=_text(delta, "content"),
        refusal=_text(delta, "refusal"),
        calls=tuple(_call_part(call) for call in calls) if isinstance(calls, list) else (),
        finish=_text(choice, "finish_reason"),
        usage=usage,
    )


def read_whole(body: object) -> Part:
    """Read an answer that came whole; its message stands where a chunk has its delta."""
    choices = _get(body, "choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    as_chunk = {"delta": _get(first, "message"), "finish_reason": _get(first, "finish_reason")}
    part = read_chunk(
        {
            "model": _get(body, "model"),
            "choices": [] if first is None else [as_chunk],
            "usage": _get(body, "usage"),
        }
    )
    return replace(part, finish=part.finish or "stop")


def whole(pieces: Iterable[str]) -> str:
    """Join pieces; surrogate halves that were torn apart become the character they stand for."""
    joined = "".join(pieces)
    if joined.isascii():
        return joined
    return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _get(thing: object, name: str) -> object:
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _text(thing: object, name: str) -> str:
    value = _get(thing, name)
    return value if isinstance(value, str) else ""


def _number(thing: object, name: str) -> int:
    value = _get(thing, name)
    return value if isinstance(value, int) and value > 0 else 0


def _call_part(call: object) -> CallPart:
    function = _get(call, "function")
    index = _get(call, "index")
    return CallPart(
        index=index if isinstance(index, int) else None,
        id=_text(call, "id"),
        name=_text(function, "name"),
        arguments=_text(function, "arguments"),
    )


def _usage(usage: object) -> Usage | None:
    if usage is None:
        return None
    sent = _number(usage, "prompt_tokens")
    cached = _number(_get(usage, "prompt_tokens_details"), "cached_tokens")
    cached = cached or _number(usage, "prompt_cache_hit_tokens")
    output = _number(usage, "completion_tokens")
    return Usage(input=sent, cached=min(cached, sent), output=output)
