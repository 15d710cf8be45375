"""Suspects: the files of a Python project that failing tests point at, the likeliest first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

FRAME: Final = re.compile(r'File "(?P<path>[^"\n]+)", line \d+, in (?P<function>\w+)')
FAILED: Final = re.compile(
    r"^(?:FAIL|ERROR): (?P<test>\w+) \((?P<module>[\w.]+?)(?:\.[A-Z]\w*(?:\.\w+)?)?\)", re.MULTILINE
)
IMPORT_ERROR: Final = re.compile(r"unittest\.loader\._FailedTest\.(?P<module>[\w.]+)")


def suspects(output: str, listing: Sequence[str], texts: Mapping[str, str]) -> list[str]:
    """Return paths of *listing* to look at, given the *texts* that were read already.

    First what the tracebacks name, from the place of the error outwards; then the failing tests'
    own files; then what those import.
    """
    found = [_listed(hit["path"], listing) for hit in reversed([*FRAME.finditer(output)])]
    found += [_module(name, listing) for name in _failing_modules(output)]
    tests = [path for path in found if path in texts]
    found += [_module(name, listing) for path in tests for name in _imports(texts[path])]
    return list(dict.fromkeys(path for path in found if path))


def ranks(output: str, texts: Mapping[str, str], path: str) -> Iterator[tuple[range, int]]:
    """Yield line ranges of the functions in *path*, each with a rank: 0 is the likeliest.

    Rank 0: named by a failing test's code or a traceback; 1: used by those. Lines count from 1.
    A file that Python can't parse has no ranks.
    """
    tests = {hit["test"] for hit in FAILED.finditer(output)}
    frames = {hit["function"] for hit in FRAME.finditer(output)}
    named = set(frames)
    for text in texts.values():
        named |= {name for f in _functions(text) if f.name in tests for name in _used(f)}
    functions = _functions(texts.get(path, ""))
    used = {name for f in functions if f.name in named for name in _used(f)}
    for function in functions:
        rank = 0 if function.name in named else 1 if function.name in used else 2
        yield range(function.lineno, (function.end_lineno or function.lineno) + 1), rank


def _listed(path: str, listing: Sequence[str]) -> str:
    """Return the longest listed path that an absolute one ends with."""
    ends = [one for one in listing if path == one or path.endswith(f"/{one}")]
    return max(ends, key=len, default="")


def _failing_modules(output: str) -> Iterator[str]:
    yield from (hit["module"] for hit in FAILED.finditer(output))
    yield from (hit["module"] for hit in IMPORT_ERROR.finditer(output))


def _module(name: str, listing: Sequence[str]) -> str:
    """Return the file of a dotted module name; one that is a suffix of a path is good enough."""
    base = name.replace(".", "/")
    for path in (f"{base}.py", f"{base}/__init__.py"):
        near = [one for one in listing if one == path or one.endswith(f"/{path}")]
        if near:
            return min(near, key=len)
    return ""


def _imports(text: str) -> Iterator[str]:
    for node in ast.walk(_tree(text)):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module)):
                yield from (f"{module}.{alias.name}" for alias in node.names)
                yield module
            case _:
                pass


def _functions(text: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(_tree(text)) if isinstance(node, ast.FunctionDef)]


def _used(function: ast.FunctionDef) -> Iterable[str]:
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case _:
                pass


def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
