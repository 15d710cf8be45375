"""Mutants: bugs that are planted on purpose, each named with the clause that it breaks."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from docsgen import clauses

LISTS: Final = clauses.ROOT / "tests/mutants"
CORE: Final = (
    *("B1", "B2", "B3", "B5", "B6", "B7", "B8", "B9", "B10", "B11", "B14", "B15", "B16", "B17"),
)
"""The sections in which each clause must have a marked test, and a mutant that it finds."""
DEVICES: Final = ("E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E10")
"""The same, for the devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One line changed for the worse, where it was seen in the field, and what must notice.

    ``clauses`` are those of the design that it breaks, where there are any; a list writes
    ``clause``, one or several of them. ``found_in`` is the list. A bug that ``hangs`` is found by
    a time-out alone.
    """

    name: str
    case: str
    file: str
    line: str
    becomes: str
    tests: tuple[str, ...]
    found_in: str
    clauses: tuple[str, ...] = ()
    hangs: bool = False


def mutants(folder: Path = LISTS) -> list[Mutant]:
    """Read all lists of *folder*, in the order of their names."""
    return [
        _mutant(path, name, one, hangs=one.pop("hangs", False))
        for path in sorted(folder.glob("*.toml"))
        for name, one in tomllib.loads(path.read_text(encoding="utf-8")).items()
    ]


def _mutant(path: Path, name: str, one: dict[str, str | list[str]], *, hangs: bool) -> Mutant:
    told = {key: str(one[key]) for key in ("case", "file", "line", "becomes")}
    clause = one.get("clause", [])
    return Mutant(
        **told,
        name=name,
        tests=tuple(one["tests"]),
        found_in=path.name,
        clauses=(clause,) if isinstance(clause, str) else tuple(clause),
        hangs=hangs,
    )


def planted(clause: str, listed: Sequence[Mutant], uses: Sequence[clauses.Use]) -> list[Mutant]:
    """Return the mutants of a clause that a test of just this clause is named to find."""
    marked = {use.test.partition("::")[0] for use in uses if use.clause == clause}
    return [
        mutant
        for mutant in listed
        if clause in mutant.clauses
        and any(test.partition("::")[0] in marked for test in mutant.tests)
    ]


def table() -> str:
    """Return the page's table: for each clause of these sections what is planted, and where.

    A dash means that nothing is planted yet which a test of that clause finds.
    """
    listed, uses = mutants(), clauses.uses()
    lines = ["| clause | planted bug | in |", "|---|---|---|"]
    for section in clauses.sections():
        if section.name not in (*CORE, *DEVICES):
            continue
        for clause in section.clauses:
            found = planted(clause, listed, uses)
            named = "<br>".join(f"{one.case} (`{one.name}`)" for one in found)
            lists = "<br>".join(
                f"[{name}](../../tests/mutants/{name})"
                for name in dict.fromkeys(one.found_in for one in found)
            )
            dash = "\N{EN DASH}"
            lines.append(f"| {clause} | {named or dash} | {lists or dash} |")
    return "\n".join(lines)
