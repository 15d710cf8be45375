"""Rules as text: the gate's ``[[rules]]`` read from TOML and written as TOML (B3.4)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

from upright.core.gate import Rule
from upright.settings.errors import SettingsError
from upright.settings.parse import Place, parse

EMPTY: Final = "# No rule of your own: the built-in ones hold.\n"
_DEFAULTS: Final = {each.name: each.default for each in fields(Rule)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """What such a text holds: nothing but rules."""

    rules: tuple[Rule, ...] = ()


def read_rules(text: str, *, origin: str) -> tuple[Rule, ...]:
    """Read rules, in their order.

    Raises:
        SettingsError: it is no TOML, a key is unknown (with the nearest one), a value is of a
            wrong type, or two rules have one name.
    """
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except RecursionError as error:
        raise SettingsError("", origin, "this is nested too deeply") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError("", origin, f"this is no TOML: {error}") from error
    rules = parse(_File, table, Place(key="", origin=origin)).rules
    seen: set[str] = set()
    for n, rule in enumerate(rules):
        if not rule.name.strip() or rule.name in seen:
            problem = f"each rule needs a name of its own, not {rule.name!r}"
            key = f"rules.{n}.name"
            raise SettingsError(key, origin, problem)
        seen.add(rule.name)
    return rules


def write_rules(rules: Iterable[Rule]) -> str:
    """Write rules as TOML that :func:`read_rules` reads back; the same rules, the same text."""
    return "\n".join("\n".join(_lines(rule)) + "\n" for rule in rules) or EMPTY


def _lines(rule: Rule) -> Iterator[str]:
    yield "[[rules]]"
    for each in fields(Rule):
        value = getattr(rule, each.name)
        if value != _DEFAULTS[each.name]:
            yield f"{each.name} = {_toml(value)}"


def _toml(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case StrEnum():
            return _text(value.value)
        case str():
            return _text(value)
        case tuple() if value and isinstance(value[0], tuple):
            return "{ " + ", ".join(f"{_text(key)} = {_text(glob)}" for key, glob in value) + " }"
        case tuple():
            return f"[{', '.join(_toml(each) for each in value)}]"
        case _:
            problem = f"a rule has no field like {value!r}"
            raise TypeError(problem)


def _text(text: str) -> str:
    """Write a TOML basic string: JSON's escapes are TOML's, and DEL needs one as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
