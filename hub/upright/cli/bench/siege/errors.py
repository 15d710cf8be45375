"""Errors in the hubs' logs, counted by event: what was met, and how it was told."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_EXCEPTION: Final = re.compile(r"^[\s|]*(?:[\w.]+\.)?(\w+(?:Error|Exception)):", re.MULTILINE)
"""An exception's last line, also within a group."""


def errors_in(folder: Path) -> Counter[str]:
    """Count the errors in every hub's log in *folder*: event, and the exception's last line."""
    found = Counter[str]()
    for log in sorted(folder.glob("hub*.log")):
        found.update(told(log.read_text(encoding="utf-8", errors="replace").splitlines()))
    return found


def told(lines: Iterable[str]) -> Iterable[str]:
    """Yield each error of a log of JSON lines: its event, the service, and the exception.

    What is no JSON is no log line of ours.
    """
    for line in lines:
        row = _row(line)
        if row.get("level") == "error":
            named = _EXCEPTION.findall(str(row.get("trace", "")))
            words = (row.get("event"), row.get("service"), named[-1] if named else None)
            yield " ".join(str(word) for word in words if word)


def _row(line: str) -> dict[str, object]:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}
