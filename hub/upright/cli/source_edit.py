"""``upright source add|enable|disable``: what is written into the configuration, checked before."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_origin, get_type_hints

import click

from upright.cli.errors import CliError, Exit
from upright.cli.place import Place
from upright.plugin.connectors import problems
from upright.plugin.loading import Door
from upright.plugin.manifest import installed, listed
from upright.settings.edit import Value, add_source, set_key
from upright.settings.home import write_private
from upright.settings.parse import Place as Where
from upright.settings.parse import parse
from upright.settings.shape import SourceSection

COMMON: Final = ("mode", "enabled")
COMMAND: Final = "this command"
LATER: Final = "It takes effect when the hub is started again."


def add(place: Place, name: str, kind: str, pairs: Sequence[str]) -> None:
    """Add a source; nothing is written unless its keys are all right.

    Raises:
        CliError: a pair is none, or no plugin offers the kind.
        SettingsError: a key or a value is wrong, or the name is taken.
    """
    hints = _hints(kind)
    given = {key: _typed(hints.get(key), text) for key, text in _split(pairs)}
    keys: dict[str, Value] = {"connector": kind, **given}
    _check(name, keys)
    _write(place, lambda text, origin: add_source(text, name, keys, origin=origin))


def switch(place: Place, name: str, *, on: bool) -> None:
    """Enable or disable a source; SettingsError when there is none of this name."""
    _write(place, lambda text, origin: set_key(text, name, "enabled", value=on, origin=origin))


def _hints(kind: str) -> Mapping[str, Any]:
    plugins = listed(installed())
    loaded = Door().connectors(plugins, {kind})
    if kind not in loaded.types:
        raise CliError(loaded.failures[kind], Exit.USAGE)
    common = get_type_hints(SourceSection)
    return {
        **get_type_hints(loaded.types[kind].settings),
        **{key: common[key] for key in COMMON},
    }


def _split(pairs: Sequence[str]) -> list[tuple[str, str]]:
    found = [pair.partition("=") for pair in pairs]
    for key, equals, value in found:
        if not equals or not key:
            said = f"{key or value!r} is no key=value"
            raise CliError(said, Exit.USAGE)
    return [(key, value) for key, _, value in found]


def _typed(hint: object, text: str) -> Value:
    """Return the value that a text stands for, by the type of its key; a list by its commas."""
    if hint is str:
        return text
    try:
        value: Value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    if get_origin(hint) in {tuple, frozenset} and not isinstance(value, list | dict):
        return [part.strip() for part in text.split(",") if part.strip()]
    return value


def _check(name: str, keys: Mapping[str, Value]) -> None:
    """Read a source's table as the hub will; SettingsError names what is wrong with it."""
    where = Where(key=f"sources.{name}", origin=COMMAND)
    ours = {key: keys[key] for key in ("connector", *COMMON) if key in keys}
    rest = {key: value for key, value in keys.items() if key not in ours}
    section = parse(SourceSection, {**ours, "keys": rest}, where)
    wrong = problems({name: section}, listed(installed()), file=COMMAND)
    if name in wrong:
        raise CliError(wrong[name], Exit.USAGE)


def _write(place: Place, change: Callable[[str, str], str]) -> None:
    file = place.settings.file.resolve()
    if not file.exists():
        said = f"there is no {file}; `upright init` writes one"
        raise CliError(said, Exit.USAGE)
    text = file.read_text(encoding="utf-8")
    write_private(file, change(text, str(file)).encode())


def told(done: str) -> None:
    """Say what was done, and when it counts."""
    click.echo(f"{done} {LATER}")
