"""Templates: ``${name}`` and ``${function(arguments)}`` in a script's texts; pure.

Grammar: an expression is a 'string', a dotted name, or a function with expressions as arguments.
Everything is text; an unknown name is nothing, which only ``default`` takes.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from upright.llm.scripted.errors import TemplateError
from upright.llm.scripted.unified import changed, diff

Names = Callable[[str], str | None]
Filled: TypeAlias = Any  # JSON: what a tool takes

TOKEN: Final = re.compile(
    r"\s*(?:(?P<string>'(?:[^'\\]|\\.)*')|(?P<name>[A-Za-z_][\w.]*)|(?P<mark>[(),}]))"
)
SPLAT: Final = "${*"


def _tail(text: str, lines: str) -> str:
    return "\n".join(text.rstrip().splitlines()[-int(lines) :])


def _found(text: str, pattern: str) -> str | None:
    hit = re.search(pattern, text)
    if hit is None:
        return None
    return str(hit[1] if hit.re.groups else hit[0])


FUNCTIONS: Final[Mapping[str, Callable[..., str | None]]] = MappingProxyType(
    {
        "changed": changed,
        "diff": diff,
        "found": _found,
        "json": lambda text: json.dumps(text, ensure_ascii=False),
        "replace": lambda text, old, new: text.replace(old, new),
        "short": lambda text: text.strip()[:7],
        "sub": lambda text, pattern, new: re.sub(pattern, new, text),
        "tail": _tail,
        "trim": lambda text: text.strip(),
    }
)


def fill(value: object, names: Names) -> Filled:
    """Fill in a value: texts, and those in lists and tables.

    In a list, ``${*name}`` becomes the words of the name's value. A table with the keys ``each``
    and ``cases`` becomes a list: for each item of a JSON list, the first case whose ``match``
    fits it, filled in with ``item``.

    Raises:
        TemplateError: a name that nothing knows, or a malformed expression.
    """
    match value:
        case str():
            return render(value, names)
        case dict() if "each" in value:
            return _each(value, names)
        case dict():
            return {key: fill(item, names) for key, item in value.items()}
        case list():
            return [done for item in value for done in _items(item, names)]
        case _:
            return value


def render(text: str, names: Names, escape: Callable[[str], str] = str) -> str:
    """Fill in one text; *escape* is applied to each value that is put in."""
    pieces: list[str] = []
    at = 0
    while (start := text.find("${", at)) >= 0:
        value, end = _expression(text, start + 2, names)
        if text[end : end + 1] != "}":
            raise TemplateError(text, "an expression ends with }")
        if value is None:
            raise TemplateError(text[start : end + 1], "nothing is known by this name")
        pieces += [text[at:start], escape(value)]
        at = end + 1
    return "".join([*pieces, text[at:]])


def _items(item: object, names: Names) -> list[Any]:
    if isinstance(item, str) and item.startswith(SPLAT):
        return shlex.split(render("${" + item.removeprefix(SPLAT), names))
    return [fill(item, names)]


def _each(value: Mapping[str, Any], names: Names) -> list[Any]:
    rows = []
    for item in json.loads(names(value["each"]) or "[]"):

        def known(name: str, item: object = item) -> str | None:
            return str(item) if name == "item" else names(name)

        for case in value["cases"]:
            if re.search(case["match"], str(item)):
                rows.append(fill({k: v for k, v in case.items() if k != "match"}, known))
                break
    return rows


def _expression(text: str, at: int, names: Names) -> tuple[str | None, int]:
    """Evaluate the expression at *at*; return it, and where what follows it stands."""
    token = TOKEN.match(text, at)
    if token is None or token["mark"]:
        raise TemplateError(text, f"malformed at {at}")
    end = token.end()
    if token["string"]:
        return re.sub(r"\\(['\\])", r"\1", token["string"][1:-1]), end
    if text[end : end + 1] != "(":
        return names(token["name"]), end
    arguments: list[str | None] = []
    while text[end : end + 1] in {"(", ","}:
        value, end = _expression(text, end + 1, names)
        arguments.append(value)
    if text[end : end + 1] != ")":
        raise TemplateError(text, "a call ends with )")
    return _applied(token["name"], arguments), end + 1


def _applied(name: str, arguments: Sequence[str | None]) -> str | None:
    if name == "default":
        return next((value for value in arguments if value is not None), None)
    function = FUNCTIONS.get(name)
    if function is None:
        raise TemplateError(name, f"no such function; there are {', '.join(sorted(FUNCTIONS))}")
    given = [value for value in arguments if value is not None]
    if len(given) < len(arguments):
        return None
    try:
        return function(*given)
    except (TypeError, ValueError, re.error) as error:
        raise TemplateError(name, str(error)) from error
