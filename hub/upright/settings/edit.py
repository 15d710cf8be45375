"""Edit: one source in the configuration's text is added or changed; everything else stays as it is.

The text is changed line by line, so that comments stay, and what came of it is read back: if any
other value had changed, the text is left alone and a person is asked to edit it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from upright.settings.errors import SettingsError, nearest

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HEADER: Final = re.compile(r"^\s*\[")

Value = bool | int | float | str | Sequence[Any] | Mapping[str, Any]


def add_source(text: str, name: str, keys: Mapping[str, Value], *, origin: str) -> str:
    """Return the text with a new ``[sources.NAME]`` at its end; keys that are None are left out.

    Raises:
        SettingsError: it is there already, the name can't be one, or *text* is no TOML.
    """
    before = _read(text, origin)
    if not NAME.fullmatch(name):
        problem = "a source's name is made of letters, digits, - and _"
        raise _wrong(name, origin, problem)
    if name in before.get("sources", {}):
        problem = "there is a source of this name already"
        raise _wrong(name, origin, problem)
    body = "".join(f"{_key(key)} = {written(value)}\n" for key, value in keys.items())
    head = text if not text or text.endswith("\n") else f"{text}\n"
    gap = "\n" if head.strip() else ""
    made = f"{head}{gap}[sources.{name}]\n{body}"
    wanted = {**before, "sources": {**before.get("sources", {}), name: dict(keys)}}
    return _checked(made, wanted, name, origin)


def set_key(text: str, name: str, key: str, *, value: Value, origin: str) -> str:
    """Return the text with one key of ``[sources.NAME]`` set; a comment behind the value stays.

    Raises:
        SettingsError: there is no such source, *text* is no TOML, or the source is written in a
            form that can't be changed line by line.
    """
    before = _read(text, origin)
    sources = before.get("sources", {})
    if name not in sources:
        problem = f"there is no such source, {nearest(name, sources)}"
        raise _wrong(name, origin, problem)
    made = _set(text.splitlines(keepends=True), name, key, written(value))
    changed = {**sources[name], key: value}
    return _checked(made, {**before, "sources": {**sources, name: changed}}, name, origin)


def written(value: Value) -> str:
    """Write a value as TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case int() | float():
            return repr(value)
        case Mapping():
            inner = ", ".join(f"{_key(key)} = {written(one)}" for key, one in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case _:
            return f"[{', '.join(written(one) for one in value)}]"


def _wrong(name: str, origin: str, problem: str) -> SettingsError:
    return SettingsError(f"sources.{name}", origin, problem)


def _key(key: str) -> str:
    return key if NAME.fullmatch(key) else _quoted(key)


def _quoted(text: str) -> str:
    """Write a basic string: JSON's, but for the one character that TOML wants escaped as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _read(text: str, origin: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError("", origin, f"this is no TOML: {error}") from error


def _set(lines: list[str], name: str, key: str, value: str) -> str:
    header = re.compile(rf"^\s*\[\s*sources\s*\.\s*([\"']?){re.escape(name)}\1\s*\]")
    known = re.compile(
        rf"^(?P<head>\s*{re.escape(key)}\s*=\s*)(?P<old>[^#\n]*?)(?P<rest>\s*(#.*)?\n?)$"
    )
    at = next((n for n, line in enumerate(lines) if header.match(line)), None)
    if at is None:
        return "".join(lines)
    if not lines[at].endswith("\n"):
        lines[at] += "\n"
    for n in range(at + 1, len(lines)):
        if _HEADER.match(lines[n]):
            break
        if found := known.match(lines[n]):
            lines[n] = f"{found['head']}{value}{found['rest']}"
            return "".join(lines)
    lines.insert(at + 1, f"{key} = {value}\n")
    return "".join(lines)


def _checked(made: str, wanted: Mapping[str, Any], name: str, origin: str) -> str:
    """Return what was made, if it says what it should and nothing else."""
    try:
        found = tomllib.loads(made)
    except tomllib.TOMLDecodeError:
        found = {}
    if found != wanted:
        problem = "it is written in a form that can't be changed here; edit the file by hand"
        raise _wrong(name, origin, problem)
    return made
