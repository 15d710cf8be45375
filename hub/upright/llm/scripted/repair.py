"""Repair: the next change worth trying, made from sources and a test's output as they were read.

Each place where a repair's pattern matches is one candidate. What was tried is known from the
patches that the transcript holds, so nothing is remembered here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from upright.llm.scripted.suspects import ranks
from upright.llm.scripted.unified import diff


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A way to change one place; only looked at where *output* is found in the tests' output."""

    name: str
    pattern: re.Pattern[str]
    replace: str
    output: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One candidate: the repair's name, the file, and the diff."""

    repair: str
    path: str
    text: str


def next_patch(
    repairs: Sequence[Repair],
    sources: Sequence[str],
    texts: Mapping[str, str],
    *,
    output: str,
    tried: Collection[str],
) -> Patch | None:
    """Return the likeliest patch of *sources* (paths in *texts*) that was not tried yet.

    Likeliest: in functions that the failing tests use, then in what those use, then elsewhere;
    among those in the order of the repairs, then of the places.
    """
    usable = [one for one in repairs if one.output is None or one.output.search(output)]
    places = [
        (*place, path)
        for path in sources
        for place in _places(usable, texts[path], list(ranks(output, texts, path)))
    ]
    for _, order, hit, path in sorted(places, key=lambda place: place[:2]):
        repair, old = usable[order], texts[path]
        new = old[: hit.start()] + hit.expand(repair.replace) + old[hit.end() :]
        patch = Patch(repair=repair.name, path=path, text=diff(path, old, new))
        if patch.text not in tried and _means_something_else(old, new):
            return patch
    return None


def _places(
    repairs: Sequence[Repair], text: str, spans: Sequence[tuple[range, int]]
) -> Iterator[tuple[int, int, re.Match[str]]]:
    """Yield (rank, order of the repair, match) for every place in one text, from its top."""
    for order, repair in enumerate(repairs):
        for hit in repair.pattern.finditer(text):
            line = text.count("\n", 0, hit.start()) + 1
            yield min((rank for lines, rank in spans if line in lines), default=2), order, hit


def _means_something_else(old: str, new: str) -> bool:
    """Say whether *new* is Python that does something else than *old*: words changed nothing."""
    after = _meaning(new)
    return after is not None and after != _meaning(old)


def _meaning(text: str) -> str | None:
    """Return the syntax tree as text, docstrings left out; None for what is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = None
    return ast.dump(tree)
