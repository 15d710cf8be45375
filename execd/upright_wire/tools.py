"""Tools: which programs a device says that it has, so that work is not moved where it can't go on.

Only names of this list are asked about and told: what else is installed is the owner's affair.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

TOOLS: Final = (
    *("bash", "bundle", "bun", "cargo", "cmake", "composer", "conda", "deno", "docker"),
    *("dotnet", "elixir", "gcc", "git", "go", "gradle", "helm", "hg", "java", "jq", "just"),
    *("kubectl", "make", "mix", "mvn", "ninja", "node", "npm", "npx", "php", "pip", "pipx"),
    *("pnpm", "podman", "poetry", "pre-commit", "psql", "pytest", "python", "python3"),
    *("rg", "ruby", "ruff", "rustc", "sbt", "sqlite3", "swift", "terraform", "tox", "uv"),
    *("yarn", "zig"),
)
PREFIX: Final = "tool:"


def told(present: Iterable[str]) -> tuple[str, ...]:
    """Return the labels that say which tools are there."""
    return tuple(f"{PREFIX}{name}" for name in present)


def heard(labels: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Part labels into a workspace's own and the names of tools, of the list alone."""
    own, tools = [], []
    for label in labels:
        if label.startswith(PREFIX):
            tools.append(label.removeprefix(PREFIX))
        else:
            own.append(label)
    return tuple(own), tuple(name for name in tools if name in TOOLS)


def lacking(used: Iterable[str], present: Iterable[str]) -> tuple[str, ...]:
    """Return which programs that were *used* are on the list and not *present*, sorted.

    A program is its name or its path. What is not on the list is not known, and not judged.
    """
    names = {program.rpartition("/")[2] for program in used}
    return tuple(sorted(names & set(TOOLS) - set(present)))
