"""Templates: texts with paths into a request in them; what is not there is empty.

``{a.b.0}`` is a path into the JSON body, ``{header:x-name}`` a header, ``{{`` a brace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_CHARS: Final = 60_000
_SLOT: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_PATH: Final = re.compile(r"(?:header:[A-Za-z0-9-]+|[^.\s:]+(?:\.[^.\s:]+)*|\.)")


@dataclass(frozen=True, slots=True)
class Source:
    """What templates are filled from: the decoded body, and the headers in lower case."""

    body: Any
    headers: Mapping[str, str]

    def fill(self, template: str) -> str:
        """Fill a template; never raises, and is never longer than MAX_CHARS."""

        def one(found: re.Match[str]) -> str:
            if found[1] is None:
                return found[0][0]
            return self.find(found[1])

        return _SLOT.sub(one, template)[:MAX_CHARS].strip()

    def find(self, path: str) -> str:
        """Return what stands at a path, as text; ``.`` is the whole body."""
        if path.startswith("header:"):
            return self.headers.get(path.removeprefix("header:").lower(), "")
        value = self.body
        for part in path.split(".") if path != "." else ():
            value = _step(value, part)
        return _text(value)


def check(name: str, template: str) -> None:
    """Refuse a template that can't work.

    Raises:
        ValueError: a brace stands alone, or a path is none.
    """
    left = _SLOT.sub("", template)
    if "{" in left or "}" in left:
        problem = f"{name}: a brace stands alone in {template!r}; write it twice"
        raise ValueError(problem)
    for found in _SLOT.finditer(template):
        if found[1] is not None and not _PATH.fullmatch(found[1]):
            problem = f"{name}: {found[0]} is no path such as {{a.b.0}} or {{header:x-name}}"
            raise ValueError(problem)


def _step(value: object, part: str) -> object:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and part.isascii() and part.isdigit():
        return value[int(part)] if int(part) < len(value) else None
    return None


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False, indent=1)
