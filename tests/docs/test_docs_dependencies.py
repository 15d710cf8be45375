from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/explanation/dependencies.md"
PROJECTS: Final = {"hub": ROOT / "pyproject.toml", "execd": ROOT / "execd/pyproject.toml"}
FORBIDDEN: Final = re.compile(r"\b[AL]?GPL", re.IGNORECASE)


def rows() -> list[list[str]]:
    """Return the cells of every row of both tables."""
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row for row in cells if row[0] != "name" and not row[0].startswith("---")]


def listed(heading: str, user: str) -> set[str]:
    """Return what one table says that *user* installs."""
    part = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return {
        canonicalize_name(row[0])
        for row in rows()
        if f"| {row[0]} |" in part and user in row[1].split(", ")
    }


def declared(user: str) -> list[Requirement]:
    project = tomllib.loads(PROJECTS[user].read_text(encoding="utf-8"))
    return [Requirement(line) for line in project["project"]["dependencies"]]


def brought(requirements: Iterable[Requirement]) -> set[str]:
    """Return the names of *requirements* and of all that they bring in this environment."""
    done: set[tuple[str, frozenset[str]]] = set()
    todo = list(requirements)
    while todo:
        wanted = todo.pop()
        key = (canonicalize_name(wanted.name), frozenset({*wanted.extras, ""}))
        if key in done:
            continue
        done.add(key)
        for line in importlib.metadata.requires(wanted.name) or ():
            inner = Requirement(line)
            marker = inner.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in key[1]):
                todo.append(inner)
    return {name for name, _ in done}


def test_each_direct_dependency_of_the_hub_stands_on_the_page_and_no_other() -> None:
    direct = {canonicalize_name(wanted.name) for wanted in declared("hub")}
    assert listed("Direct", "hub") | listed("Direct", "execd") == direct


def test_each_direct_dependency_of_the_daemon_is_named_as_such() -> None:
    direct = {canonicalize_name(wanted.name) for wanted in declared("execd")}
    assert listed("Direct", "execd") == direct


@pytest.mark.parametrize("user", sorted(PROJECTS))
def test_everything_that_is_brought_along_stands_on_the_page(user: str) -> None:
    direct = {canonicalize_name(wanted.name) for wanted in declared(user)}
    assert brought(declared(user)) - direct <= listed("What those bring", user)


def test_every_row_says_why_what_it_weighs_and_a_licence_that_we_take() -> None:
    for name, user, why, weight, licence in rows():
        assert set(user.split(", ")) <= {"hub", "execd"}, name
        assert why, name
        assert float(weight) > 0, name
        assert licence, name
        assert not FORBIDDEN.search(licence), name
