"""Parse: a TOML table becomes a frozen dataclass; the dataclass is the only description there is.

Types that a field may have: ``bool int float str Path SecretRef``, enums of strings, dataclasses,
``tuple[T, ...]``, ``frozenset[T]``, ``Mapping[str, T]``, ``T | None``, and pairs of strings
(``tuple[tuple[str, str], ...]``, written as a table).
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from upright.api import SecretRef
from upright.settings.errors import SettingsError, nearest

T = TypeVar("T")
SECRET_SCHEMES = ("keyring:", "env:", "file:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A value from the environment or a flag: text, to be read as the field's type."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value stands: its dotted key and what it was read from."""

    key: str
    origin: str

    def inside(self, name: str) -> Place:
        """Return the place of a key below this one."""
        return Place(key=f"{self.key}.{name}" if self.key else name, origin=self.origin)

    def wrong(self, problem: str) -> SettingsError:
        """Make the error that something here is wrong."""
        return SettingsError(self.key, self.origin, problem)


def parse(shape: type[T], table: Mapping[str, Any], place: Place) -> T:
    """Make a *shape* of *table*.

    Raises:
        SettingsError: an unknown or missing key, a wrong type, or what the dataclass itself refuses
            by a ValueError.
    """
    if not is_dataclass(shape):
        problem = f"{shape.__name__} is no dataclass: the plugin that offers it is broken"
        raise place.wrong(problem)
    known = {each.name: each for each in fields(shape)}
    for name in table:
        if name not in known:
            problem = f"there is no such key, {nearest(name, known)}"
            raise place.inside(name).wrong(problem)
    hints = get_type_hints(shape)
    values = {
        name: _value(hints[name], table[name], place.inside(name))
        for name in known
        if name in table
    }
    missing = [name for name, each in known.items() if name not in values and _required(each)]
    if missing:
        problem = "this key is missing"
        raise place.inside(missing[0]).wrong(problem)
    try:
        return shape(**values)
    except ValueError as error:
        raise place.wrong(str(error)) from error


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _value(hint: object, given: object, place: Place) -> object:
    if get_origin(hint) in {Union, types.UnionType}:
        hint = next(arm for arm in get_args(hint) if arm is not type(None))
    if isinstance(given, Text):
        place = Place(key=place.key, origin=given.origin)
        given = _from_text(hint, given.text, place)
    origin = get_origin(hint)
    if origin is tuple:
        return tuple(_many(hint, given, place))
    if origin is frozenset:
        return frozenset(_many(hint, given, place))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(get_args(hint)[1], given, place)
    if isinstance(hint, type) and is_dataclass(hint) and hint is not SecretRef:
        return parse(hint, _table(given, place), place)
    return _scalar(hint, given, place)


def _table(given: object, place: Place) -> Mapping[str, object]:
    if not isinstance(given, Mapping):
        problem = f"must be a table, not {_said(given)}"
        raise place.wrong(problem)
    return given


def _mapping(hint: object, given: object, place: Place) -> Mapping[str, object]:
    table = _table(given, place)
    return {name: _value(hint, value, place.inside(name)) for name, value in table.items()}


def _many(hint: object, given: object, place: Place) -> Iterator[object]:
    item = get_args(hint)[0]
    if get_origin(item) is tuple:
        yield from _mapping(str, given, place).items()
        return
    if not isinstance(given, list | tuple):
        problem = f"must be a list, not {_said(given)}"
        raise place.wrong(problem)
    for n, each in enumerate(given):
        yield _value(item, each, place.inside(str(n)))


def _scalar(hint: object, given: object, place: Place) -> object:
    if hint is Any:
        return given
    if hint is float and isinstance(given, int) and not isinstance(given, bool):
        return float(given)
    if hint is SecretRef:
        return _secret(given, place)
    if hint is Path and isinstance(given, str):
        return Path(given).expanduser()
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _member(hint, given, place)
    if type(given) is not hint:
        problem = f"must be {_WORDS.get(hint, str(hint))}, not {_said(given)}"
        raise place.wrong(problem)
    return given


def _member(hint: type[StrEnum], given: object, place: Place) -> StrEnum:
    valid = [member.value for member in hint]
    if given not in valid:
        problem = f"{_said(given)} is not valid, {nearest(str(given), valid)}"
        raise place.wrong(problem)
    return hint(str(given))


def _secret(given: object, place: Place) -> SecretRef:
    if not isinstance(given, str) or not given.startswith(SECRET_SCHEMES):
        # what stands there may be the secret itself: it is not repeated
        msg = "must be a reference: keyring:NAME, env:NAME or file:PATH"
        raise place.wrong(msg)
    return SecretRef(given)


def _from_text(hint: object, text: str, place: Place) -> object:
    if get_origin(hint) in {tuple, frozenset}:
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        if hint is bool:
            return _BOOLEANS[text.lower()]
        if hint is int:
            return int(text)
        if hint is float:
            return float(text)
    except (KeyError, ValueError):
        problem = f"must be {_WORDS[hint]}, not {text!r}"
        raise place.wrong(problem) from None
    return text


_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_WORDS: Final[Mapping[object, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
}


def _said(given: object) -> str:
    if isinstance(given, Mapping):
        return "a table"
    if isinstance(given, list):
        return "a list"
    return f"{given!r}"
