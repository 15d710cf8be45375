"""Field cases: what went wrong in systems of this kind, and which test shows that it can't here."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Final

from docsgen import clauses

TEXTS: Final = clauses.ROOT / "docs/reference/field-cases.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case in our words; ``later`` names the issue that it belongs to, if not to this core."""

    id: str
    section: str
    what: str
    address: str = ""
    later: str = ""


def cases(path: Path = TEXTS) -> list[Case]:
    """Read the cases, in the order of the file."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Case(id=name, **row) for name, row in found.items()]


@lru_cache(maxsize=1)
def tests() -> dict[str, tuple[str, ...]]:
    """Return the tests that are marked with each case, in the order of files and lines."""
    found: dict[str, list[str]] = {}
    for path in sorted((clauses.ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for test, case in _marked(text) if "mark.case(" in text else ():
            where = path.relative_to(clauses.ROOT).as_posix()
            found.setdefault(case, []).append(f"{where}::{test}")
    return {case: tuple(names) for case, names in found.items()}


def _marked(source: str) -> Iterator[tuple[str, str]]:
    """Yield (test, case) for each case that a test of a module is marked with."""
    for node in ast.parse(source).body:
        if isinstance(node, clauses.Function) and clauses.is_test(node):
            for decorator in node.decorator_list:
                yield from ((node.name, case) for case in clauses.named(decorator, "case"))


def table() -> str:
    """Return the page's generated part: each section's cases with their tests, or their issue."""
    marked, lines = tests(), list[str]()
    for section, rows in groupby(cases(), key=lambda case: case.section):
        lines += ["", f"## {section}", "", "| case | what must hold | tests |", "|---|---|---|"]
        lines += [f"| {_name(case)} | {case.what} | {_cell(case, marked)} |" for case in rows]
    return "\n".join(lines[1:])


def _name(case: Case) -> str:
    return f"[{case.id}]({case.address})" if case.address else case.id


def _cell(case: Case, marked: dict[str, tuple[str, ...]]) -> str:
    shown = [clauses.link(test) for test in marked.get(case.id, ())]
    return "<br>".join([*shown, *([f"later: *{case.later}*"] if case.later else [])])
