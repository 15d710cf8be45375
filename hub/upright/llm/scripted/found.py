"""JSON objects found in texts: bare, among other words, or written into a string of another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

DECODER: Final = json.JSONDecoder()
MAX_DEPTH: Final = 8
BLOCK: Final = re.compile(r"<material [^>]*>\n(?P<json>.*)\n</material>", re.DOTALL)


def object_of(text: str) -> Mapping[str, Any]:
    """Return the object that a whole text is, in a block or not; an empty one when it is none."""
    block = BLOCK.fullmatch(text)
    try:
        value = json.loads(block["json"] if block else text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def objects_in(text: str, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield every object in a text, outer ones before what is in them."""
    at = text.find("{")
    while at >= 0 and depth < MAX_DEPTH:
        try:
            value, end = DECODER.raw_decode(text, at)
        except ValueError:
            at = text.find("{", at + 1)
            continue
        yield from _inside(value, depth)
        at = text.find("{", end)


def _inside(value: object, depth: int) -> Iterator[Mapping[str, Any]]:
    match value:
        case dict():
            yield value
            for item in value.values():
                yield from _inside(item, depth + 1)
        case list():
            for item in value:
                yield from _inside(item, depth + 1)
        case str() if "{" in value:
            yield from objects_in(value, depth + 1)
        case _:
            pass
