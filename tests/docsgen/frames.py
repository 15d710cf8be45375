"""Frames: every message of the wire, drawn from the values that the codec reads and writes."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum, StrEnum
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from upright_wire import codec, frames

GROUPS: Final[Mapping[str, object]] = {
    "Handshake": frames.Handshake,
    "Pairing": frames.Pairing,
    "Keeping in step": frames.Inventory | frames.Sync,
    "Commands": frames.Commanding,
    "The rest": frames.Workspaces | frames.Ping | frames.Pong | frames.Problem,
}
BOUNDS: Final = (
    ("MAX_TEXT_BYTES", "of a control message"),
    ("MAX_FIRST_BYTES", "of the first message of a socket, before anybody is known"),
    ("MAX_PAYLOAD_BYTES", "of a data frame's payload"),
    ("COMMAND_CREDIT_BYTES", "of one command under way, not acknowledged yet"),
    ("LINK_CREDIT_BYTES", "of all commands of a link under way"),
)
_PLAIN: Final[Mapping[object, str]] = {
    str: "text",
    int: "whole number",
    bool: "true or false",
    bytes: "hexadecimal",
}


def messages() -> list[type[Any]]:
    """Return the classes of all messages, in the order of the source."""
    return [kind for union in GROUPS.values() for kind in get_args(union)]


def records() -> list[type[Any]]:
    """Return the dataclasses that messages hold, each behind whatever holds it first."""
    found: dict[type[Any], None] = {}
    waiting = messages()
    while waiting:
        kind = waiting.pop(0)
        inner = [part for part in _inside(kind) if is_dataclass(part) and part not in found]
        found.update(dict.fromkeys(inner))
        waiting += inner
    return list(found)


def enums() -> list[type[StrEnum]]:
    """Return the enumerations whose members stand on the wire, by their names."""
    inside = {part for kind in [*messages(), *records()] for part in _inside(kind)}
    named = [part for part in inside if issubclass(part, StrEnum)]
    return sorted(named, key=lambda kind: kind.__name__)


def _inside(kind: type[Any]) -> list[type[Any]]:
    hints = get_type_hints(kind)
    return [part for field in fields(kind) for part in _parts(hints[field.name])]


def _parts(annotation: type[Any]) -> list[type[Any]]:
    """Return the classes that an annotation is made of."""
    inner = [part for part in get_args(annotation) if part not in {..., type(None)}]
    if not inner:
        return [annotation]
    return [part for one in inner for part in _parts(one)]


# ------------------------------------------------------------------ how it is written
def written(annotation: object) -> str:
    """Say in words what stands on the wire for a value of this annotation."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in {Union, types.UnionType}:
        return " or ".join(written(part) for part in inner if part is not type(None))
    if origin is tuple and inner[-1] is ...:
        return f"list of {written(inner[0])}"
    if origin is tuple:
        return f"[{', '.join(written(part) for part in inner)}]"
    name = getattr(annotation, "__name__", "")
    return _PLAIN.get(annotation) or f"[{name}](#{name.lower()})"


def _default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "required"
    if field.default is None:
        return "absent"
    if field.default in ("", (), b""):
        return "empty"
    if is_dataclass(field.default):
        return "its own defaults"
    value = field.default.value if isinstance(field.default, Enum) else field.default
    return f"`{value}`".lower() if isinstance(value, bool) else f"`{value}`"


def _fields(kind: type[Any]) -> str:
    hints = get_type_hints(kind)
    rows = [
        f"| `{field.name}` | {written(hints[field.name])} | {_default(field)} |"
        for field in fields(kind)
    ]
    return "\n".join(["| field | what | default |", "|---|---|---|", *rows]) if rows else ""


def _text(kind: type[Any]) -> str:
    """Return a docstring without its paragraph on errors, one line a paragraph."""
    paragraphs = (inspect.getdoc(kind) or "").replace("``", "`").split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in paragraphs if "Raises:" not in part)


def _section(level: str, title: str, kind: type[Any]) -> str:
    return "\n\n".join(part for part in (f"{level} {title}", _text(kind), _fields(kind)) if part)


def control() -> str:
    """Return every control message with its fields, by group."""
    parts = []
    for group, union in GROUPS.items():
        parts.append(f"### {group}")
        parts += [_section("####", f"`{kind.TYPE}`", kind) for kind in get_args(union)]
    return "\n\n".join(parts)


def values() -> str:
    """Return the records and the enumerations that messages hold."""
    parts = [_section("###", kind.__name__, kind) for kind in records()]
    for kind in enums():
        members = ", ".join(f"`{member.value}`" for member in kind)
        parts.append(f"### {kind.__name__}\n\n{_text(kind)}\n\n{members}")
    return "\n\n".join(parts)


def data() -> str:
    """Return the data frame: its header of fixed size, its kinds and its flags."""
    names = ("kind", "flags", "channel", "length", "offset")
    sizes = {"B": 1, "H": 2, "I": 4, "Q": 8}
    at, rows = 0, list[str]()
    for name, letter in zip(names, codec.HEADER.format.lstrip(">"), strict=True):
        rows.append(f"| {at} | {sizes[letter]} | {name} |")
        at += sizes[letter]
    kinds = ", ".join(f"{kind.value} {kind.name.lower()}" for kind in frames.Kind)
    flags = ", ".join(f"{flag.value} {(flag.name or '').lower()}" for flag in frames.Flag)
    head = ["| byte | bytes | what |", "|---|---|---|", *rows]
    return "\n".join([*head, "", _text(frames.Data), "", f"Kinds: {kinds}.", f"Flags: {flags}."])


def bounds() -> str:
    """Return the sizes that are checked before anything is believed."""
    rows = [f"| `{name}` | {getattr(frames, name):,} | {what} |" for name, what in BOUNDS]
    return "\n".join(["| bound | bytes | |", "|---|---|---|", *rows])


def closes() -> str:
    """Return the codes with which a link is closed."""
    rows = [f"| {code.value} | {code.name.lower()} |" for code in frames.CloseCode]
    return "\n".join(["| code | why |", "|---|---|", *rows])
