"""Settings: execd.toml, read whole and checked; the only place that looks at the environment."""

from __future__ import annotations

import difflib
import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from upright_execd.errors import SettingsError
from upright_execd.paths import Paths, paths_in

HOME_VARIABLE: Final = "UPRIGHT_EXECD_HOME"


class Mode(StrEnum):
    """What the hub may have run here, from nothing to all of it."""

    OFF = "off"
    READ_ONLY = "read_only"
    ASK = "ask"
    ALLOW = "allow"
    FULL = "full"


class Base(StrEnum):
    """Where a command's environment comes from."""

    LOGIN = "login"  # the login shell of the daemon's user
    OWN = "own"  # the daemon's own environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The owner's settings; the names are the keys of the file.

    ``environment`` names variables that a command may set beside the fixed few; ``readable`` what a
    command without secrets may read beside the system, the programs on the PATH and its workspace.
    ``as_root``: the owner knows that commands would have all rights of the machine.
    """

    mode: Mode = Mode.ASK
    consent_timeout_s: int = 600
    command_quota_bytes: int = 256 * 1024 * 1024
    spool_quota_bytes: int = 2 * 1024 * 1024 * 1024
    min_free_percent: int = 5
    receipt_days: int = 30
    stop_timeout_s: int = 10
    first_redial_ms: int = 5_000
    most_redial_ms: int = 60_000
    environment: tuple[str, ...] = ()
    readable: tuple[Path, ...] = ()
    environment_base: Base = Base.LOGIN
    as_root: bool = False


def home_from_environment() -> Path | None:
    """Return the folder that UPRIGHT_EXECD_HOME names, if it does."""
    named = _ENVIRONMENT.get(HOME_VARIABLE)
    return Path(named).absolute() if named else None


def login_environment() -> dict[str, str]:
    """Return this process's own environment, less what is ours."""
    return {name: value for name, value in _ENVIRONMENT.items() if name != HOME_VARIABLE}


def find_paths(home: Path | None) -> Paths:
    """Return where things lie: *home*, else UPRIGHT_EXECD_HOME, else the platform's folders."""
    return paths_in(home.absolute() if home is not None else home_from_environment())


def load(path: Path) -> Settings:
    """Read the settings at *path*; without a file the defaults hold.

    Raises:
        SettingsError: others may write the file, or it isn't TOML, or a key or value is wrong.
    """
    try:
        with path.open("rb") as file:
            _check_owner(path, os.fstat(file.fileno()))
            table = tomllib.load(file)
    except FileNotFoundError:
        return Settings()
    except tomllib.TOMLDecodeError as error:
        sentence = f"{path} is not valid TOML: {error}."
        raise SettingsError(sentence, advice="Correct that line.") from error
    return parse(table, path)


def parse(table: Mapping[str, Any], path: Path) -> Settings:
    """Check a table of settings; *path* is named in what is wrong.

    Raises:
        SettingsError: an unknown key (with the nearest one) or a value out of its bounds.
    """
    known = [field.name for field in fields(Settings)]
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.4) or known[:1]
            sentence = f"{path}: unknown key {key!r}."
            raise SettingsError(sentence, advice=f"Did you mean {near[0]!r}?")
        values[key] = _CHECKS[key](f"{path}: {key}", value)
    return Settings(**values)


def _check_owner(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        sentence = f"{path} could be read or changed by others."
        raise SettingsError(sentence, advice=f"Run: chown $(id -u) {path} && chmod 600 {path}")


def _mode(where: str, value: object) -> Mode:
    names = [mode.value for mode in Mode]
    if value not in names:
        near = difflib.get_close_matches(str(value), names, n=1, cutoff=0) or names[:1]
        sentence = f"{where} = {value!r} is no mode ({', '.join(names)})."
        raise SettingsError(sentence, advice=f"Did you mean {near[0]!r}?")
    return Mode(str(value))


def _base(where: str, value: object) -> Base:
    if value not in list(Base):
        sentence = f"{where} = {value!r} is neither {' nor '.join(Base)}."
        raise SettingsError(sentence, advice="Correct it, or delete the line for the default.")
    return Base(str(value))


def _flag(where: str, value: object) -> bool:
    if not isinstance(value, bool):
        sentence = f"{where} = {value!r} is neither true nor false."
        raise SettingsError(sentence, advice="Correct it, or delete the line for the default.")
    return value


def _between(least: int, most: int) -> Callable[[str, object], int]:
    def check(where: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            sentence = f"{where} = {value!r} is not a whole number from {least} to {most}."
            raise SettingsError(sentence, advice="Correct it, or delete the line for the default.")
        return value

    return check


def _names(where: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        sentence = f"{where} is not a list of names of variables."
        raise SettingsError(sentence, advice='Write it like ["EDITOR", "MY_TOKEN"].')
    return tuple(value)


def _folders(where: str, value: object) -> tuple[Path, ...]:
    names = value if isinstance(value, list) else [value]
    paths = tuple(Path(name).expanduser() for name in names if isinstance(name, str) and name)
    if not isinstance(value, list) or len(paths) != len(names) or not all(map(_is_narrow, paths)):
        sentence = f"{where} is not a list of absolute paths below a home."
        raise SettingsError(sentence, advice='Write it like ["~/.pyenv", "/srv/tools"].')
    return paths


def _is_narrow(path: Path) -> bool:
    return path.is_absolute() and path not in {Path.home(), *Path.home().parents}


_TIB: Final = 1024**4
_CHECKS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "mode": _mode,
    "consent_timeout_s": _between(1, 7 * 24 * 3600),
    "command_quota_bytes": _between(4096, _TIB),
    "spool_quota_bytes": _between(4096, _TIB),
    "min_free_percent": _between(0, 90),
    "receipt_days": _between(30, 3650),
    "stop_timeout_s": _between(1, 600),
    "first_redial_ms": _between(10, 60_000),
    "most_redial_ms": _between(10, 600_000),
    "environment": _names,
    "readable": _folders,
    "environment_base": _base,
    "as_root": _flag,
}
_ENVIRONMENT: Final = dict(os.environ)  # noqa: TID251  # the one place that reads it, and once
