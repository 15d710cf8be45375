"""Templates: the homes that agents begin with, package data beside this file; reading blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from upright.core.home import GUIDE
from upright.store.errors import UnknownIdError

ROUTER: Final = "router"
DEVELOPER: Final = "developer"
BUILT_IN: Final = (DEVELOPER, ROUTER)
"""Agents that every hub has."""


def _root() -> Traversable:
    return files(__package__).joinpath("templates")


@cache
def names() -> tuple[str, ...]:
    """Return the templates' names, sorted."""
    found = (one.name for one in _root().iterdir() if one.joinpath(GUIDE).is_file())
    return tuple(sorted(found))


@cache
def read(name: str) -> Mapping[str, str]:
    """Return a template's files: their texts by path.

    Raises:
        UnknownIdError: there is no such template.
    """
    if name not in names():
        raise UnknownIdError(name)
    return dict(_files(_root().joinpath(name), ""))


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for one in sorted(folder.iterdir(), key=lambda each: each.name):
        path = f"{prefix}{one.name}"
        if one.is_dir():
            yield from _files(one, f"{path}/")
        elif one.name.endswith(".md"):
            yield path, one.read_text(encoding="utf-8")
