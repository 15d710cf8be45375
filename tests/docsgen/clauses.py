"""Clauses: which tests exercise which clause of the design, read from the tests without a run."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TEXTS: Final = ROOT / "docs/reference/clauses.toml"
SECTION: Final = re.compile(r"[A-Z]+\d+")
SHOWN: Final = 8  # tests named in one cell; the rest is counted

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One marker: the clause that it names, and the test that carries it."""

    clause: str
    test: str  # "tests/unit/…/test_x.py::test_name", or "…::Class::test_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A group of clauses: its letter and number, its title, and the text of each clause."""

    name: str
    title: str
    clauses: Mapping[str, str]


def sections(path: Path = TEXTS) -> list[Section]:
    """Read the clauses, in the order of the file."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Section(
            name=name,
            title=table["title"],
            clauses={f"{name}.{number}": table[number] for number in table if number != "title"},
        )
        for name, table in found.items()
    ]


def named(node: ast.AST, marker: str = "clause") -> Iterator[str]:
    """Yield the ids of every ``mark.clause(…)`` in *node*, or of another *marker*."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(f"mark.{marker}"):
            for argument in call.args:
                yield str(ast.literal_eval(argument))


def is_test(node: ast.AST) -> bool:
    """Say whether pytest would collect a function."""
    return isinstance(node, Function) and node.name.startswith("test")


def marked(
    body: list[ast.stmt], where: str, inherited: tuple[str, ...], marker: str = "clause"
) -> Iterator[Use]:
    """Yield the uses of one module or class; a ``pytestmark`` and a class's markers count for all.

    The machine of a Hypothesis state machine (``TestX = Machine.TestCase``) carries its markers as
    an ordinary class does, under the class's name.
    """
    marks = tuple(
        clause
        for node in body
        if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node.targets[0])
        for clause in named(node.value, marker)
    )
    for node in body:
        here = (*inherited, *marks)
        if isinstance(node, ast.ClassDef):
            own = (*here, *_decorated(node, marker))
            name = f"{where}::{node.name}"
            if any(is_test(child) for child in node.body):
                yield from marked(node.body, name, own, marker)
            else:
                yield from (Use(clause=clause, test=name) for clause in own)
        elif isinstance(node, Function) and is_test(node):
            own = (*here, *_decorated(node, marker))
            for clause in dict.fromkeys(own):
                yield Use(clause=clause, test=f"{where}::{node.name}")


def _decorated(node: ast.ClassDef | Function, marker: str) -> list[str]:
    return [each for decorator in node.decorator_list for each in named(decorator, marker)]


@lru_cache(maxsize=4)
def uses(folder: Path = ROOT / "tests", marker: str = "clause") -> tuple[Use, ...]:
    """Return every use below *folder*, in the order of files and lines; it is read once."""
    return tuple(
        use
        for path in sorted(folder.rglob("test_*.py"))
        if f"mark.{marker}(" in (text := path.read_text(encoding="utf-8"))
        for use in marked(
            ast.parse(text).body,
            path.relative_to(folder.parent).as_posix(),
            (),
            marker,
        )
    )


def link(test: str) -> str:
    """Write a test as a link to its file, seen from docs/reference/."""
    path, _, name = test.partition("::")
    return f"[{Path(path).stem}::{name}](../../{path})"


def cell(tests: list[str]) -> str:
    """Write a clause's tests; a dash when there are none."""
    shown = [link(test) for test in tests[:SHOWN]]
    if len(tests) > SHOWN:
        shown.append(f"and {len(tests) - SHOWN} more")
    return "<br>".join(shown) or "\N{EN DASH}"


def table() -> str:
    """Return the page's generated part: how many clauses are exercised, then all of them."""
    by_clause: dict[str, list[str]] = {}
    for use in uses():
        by_clause.setdefault(use.clause, []).append(use.test)
    known = [clause for section in sections() for clause in section.clauses]
    covered = sum(clause in by_clause for clause in known)
    lines = [f"{covered} of {len(known)} clauses are exercised by at least one marked test."]
    for section in sections():
        lines += ["", f"## {section.name} {section.title}", "", "| clause | what | tests |"]
        lines.append("|---|---|---|")
        lines += [
            f"| {clause} | {text} | {cell(by_clause.get(clause, []))} |"
            for clause, text in section.clauses.items()
        ]
    return "\n".join(lines)
