"""Features of connectors: which test shows which, and what is visibly not there yet."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from docsgen import clauses

TEXTS: Final = clauses.ROOT / "docs/reference/connectors.toml"
SHOWN: Final = 3  # tests named in one cell; the rest is counted


class Priority(StrEnum):
    """Whether a connector can be released without it."""

    MUST = "M"
    LATER = "L"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One row: what a connector does, and how urgent that is."""

    id: str
    what: str
    priority: Priority = Priority.MUST


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of connector, with its features; ``about`` says in a sentence what it is."""

    name: str
    title: str
    features: tuple[Feature, ...]
    about: str = ""


def kinds(path: Path = TEXTS) -> tuple[Kind, ...]:
    """Read the kinds, in the order of the file; a row that begins with "later: " may wait."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(_kind(name, table) for name, table in found.items())


def _kind(name: str, table: Mapping[str, str]) -> Kind:
    rows = {key: text for key, text in table.items() if key not in {"title", "about"}}
    features = tuple(
        Feature(
            id=f"{name}.{key}",
            what=text.removeprefix("later: "),
            priority=Priority.LATER if text.startswith("later: ") else Priority.MUST,
        )
        for key, text in rows.items()
    )
    return Kind(name=name, title=table["title"], features=features, about=table.get("about", ""))


def tests() -> dict[str, list[str]]:
    """Return the tests that are marked with each feature, in the order of files and lines."""
    found: dict[str, list[str]] = {}
    for use in clauses.uses(marker="feature"):
        found.setdefault(use.clause, []).append(use.test)
    return found


def table() -> str:
    """Return the page's generated part: how much of each kind is shown, then every row."""
    marked = tests()
    lines = ["| kind | must | of them shown by a test | later, shown |", "|---|---|---|---|"]
    lines += [_summary(kind, marked) for kind in kinds()]
    for kind in kinds():
        lines += ["", f"## {kind.title}", ""]
        lines += [kind.about, ""] if kind.about else []
        lines += ["| feature | | what | shown by |", "|---|---|---|---|"]
        lines += [
            f"| `{one.id}` | {one.priority} | {one.what} | {_cell(marked.get(one.id, []))} |"
            for one in kind.features
        ]
    return "\n".join(lines)


def _summary(kind: Kind, marked: Mapping[str, list[str]]) -> str:
    must = [one for one in kind.features if one.priority is Priority.MUST]
    later = [one for one in kind.features if one.priority is Priority.LATER]
    shown, extra = (sum(one.id in marked for one in rows) for rows in (must, later))
    return f"| {kind.title} | {len(must)} | {shown} | {extra} of {len(later)} |"


def _cell(names: list[str]) -> str:
    shown = [clauses.link(test) for test in names[:SHOWN]]
    if len(names) > SHOWN:
        shown.append(f"and {len(names) - SHOWN} more")
    return "<br>".join(shown) or "*not yet*"
