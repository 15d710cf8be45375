"""Plain values: frozen dataclasses to JSON values and back, strictly, by their annotations.

Known types are ``str``, ``int``, ``bool``, ``bytes`` (lower-case hexadecimal), string enums,
tuples, ``X | None`` (absent when None) and frozen dataclasses of these. There are no floats.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Final, TypeVar, get_args, get_origin, get_type_hints

from upright_wire.errors import FrameError

T = TypeVar("T")
MAX_INT: Final = 2**63 - 1


def to_plain(value: object) -> object:
    """Return what JSON can hold; a field that is None is left out."""
    match value:
        case bytes():
            return value.hex()
        case StrEnum():
            return value.value
        case None | str() | int():
            return value
        case tuple():
            return [to_plain(item) for item in value]
        case _ if is_dataclass(value):
            named = ((field.name, getattr(value, field.name)) for field in fields(value))
            return {name: to_plain(item) for name, item in named if item is not None}
        case _:
            raise TypeError(type(value).__name__)


def from_plain(kind: type[T], value: object) -> T:
    """Return a *kind* (a dataclass) read from an object; keys that it doesn't know are ignored.

    Raises:
        FrameError: a value is missing or of another type.
        WireError: what the dataclass itself refuses.
    """
    return _dataclass(kind, value, kind.__name__)


def is_unicode(text: str) -> bool:
    """Say whether a text can be encoded; JSON can smuggle in half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


@cache
def _shape(kind: Callable[..., object]) -> tuple[tuple[str, object, bool], ...]:
    """Return name, type and "must be given" of each field."""
    if not isinstance(kind, type) or not is_dataclass(kind):
        raise TypeError(kind)
    hints = get_type_hints(kind)
    return tuple(
        (field.name, hints[field.name], field.default is MISSING) for field in fields(kind)
    )


def _dataclass(kind: type[T], value: object, where: str) -> T:
    if not isinstance(value, dict):
        raise FrameError(at=where, expected="an object")
    given: dict[str, object] = {}
    maker: Callable[..., T] = kind  # a type is hashable; the checker doubts it of type[T]
    for name, hint, is_needed in _shape(maker):
        at = f"{where}.{name}"
        if value.get(name) is not None:
            given[name] = _value(hint, value[name], at)
        elif is_needed:
            raise FrameError(at=at, expected="a value")
    return maker(**given)


def _value(hint: object, value: object, at: str) -> object:
    args = get_args(hint)
    if isinstance(hint, types.UnionType):
        (inner,) = (arg for arg in args if arg is not type(None))
        return _value(inner, value, at)
    if get_origin(hint) is tuple:
        return _tuple(args, value, at)
    if not isinstance(hint, type):
        raise TypeError(hint)
    return _dataclass(hint, value, at) if is_dataclass(hint) else _scalar(hint, value, at)


def _tuple(args: tuple[object, ...], value: object, at: str) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise FrameError(at=at, expected="a list")
    if args[-1] is Ellipsis:
        args = args[:1] * len(value)
    if len(value) != len(args):
        raise FrameError(at=at, expected=f"{len(args)} items")
    pairs = enumerate(zip(args, value, strict=True))
    return tuple(_value(arg, item, f"{at}[{n}]") for n, (arg, item) in pairs)


def _scalar(hint: type, value: object, at: str) -> object:
    if hint is bytes:
        return _bytes(value, at)
    if issubclass(hint, StrEnum):
        if not isinstance(value, str) or value not in list(hint):
            raise FrameError(at=at, expected="|".join(hint))
        return hint(value)
    if type(value) is not hint:
        raise FrameError(at=at, expected=hint.__name__)
    if isinstance(value, int) and abs(value) > MAX_INT:
        raise FrameError(at=at, expected="a number of 64 bits")
    if isinstance(value, str) and not is_unicode(value):
        raise FrameError(at=at, expected="whole characters")
    return value


def _bytes(value: object, at: str) -> bytes:
    try:
        data = bytes.fromhex(value) if isinstance(value, str) else None
    except ValueError:
        data = None
    if data is None or data.hex() != value:
        raise FrameError(at=at, expected="lower-case hexadecimal digits")
    return data
