"""Security: each promise of docs/explanation/security.md, and the tests that see it broken."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PROMISES: Final = ROOT / "docs/explanation/security.toml"


def table() -> str:
    """Return a table for each group of promises."""
    found = tomllib.loads(PROMISES.read_text(encoding="utf-8"))
    return "\n\n".join(_group(name, rows) for name, rows in found.items())


def _group(name: str, rows: dict[str, list[str]]) -> str:
    lines = [f"### {name}", "", "| promised | would be seen by |", "|---|---|"]
    lines += [f"| {promise} | {'<br>'.join(_links(tests))} |" for promise, tests in rows.items()]
    return "\n".join(lines)


def _links(tests: list[str]) -> Iterator[str]:
    """Link each ``path::name``; a test that isn't there is an error."""
    for test in tests:
        path, _, name = test.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        if not re.search(rf"def {re.escape(name)}\(", text):
            problem = f"there is no {test}"
            raise LookupError(problem)
        yield f"[{Path(path).stem}::{name}](../../{path})"
