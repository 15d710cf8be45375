"""Environment: what a command starts with; a request may set a few names, the rest is reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

SETTABLE: Final = frozenset({"TERM", "LANG", "NO_COLOR", "CI", "TZ"})
SETTABLE_PREFIX: Final = "LC_"
PLAIN: Final = SETTABLE | {"HOME", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER"}
"""What is left of the base environment for a command that gets no secrets."""
COMMAND_VARIABLE: Final = "UPRIGHT_COMMAND_ID"
"""Set in every command, and in every shim."""
FOLDER_VARIABLE: Final = "UPRIGHT_COMMAND_FOLDER"
"""The command's folder, set in every command; by it are processes found that left its group."""

_LOADERS: Final = ("LD_", "DYLD_", "GIT_", "PYTHON", "UPRIGHT_")
_NEVER: Final = frozenset(
    {
        "ALL_PROXY",
        "BASH_ENV",
        "ENV",
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "IFS",
        "JAVA_TOOL_OPTIONS",
        "NODE_OPTIONS",
        "NO_PROXY",
        "PATH",
        "PERL5LIB",
        "PERL5OPT",
        "RUBYLIB",
        "RUBYOPT",
        "SHELL",
        "SSH_ASKPASS",
        "SSH_AUTH_SOCK",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a command is given, and the names (sorted) that were asked for and not set."""

    variables: Mapping[str, str]
    dropped: tuple[str, ...]


def may_set(name: str, owner: Iterable[str]) -> bool:
    """Say whether a request may set *name*; *owner* holds the names that the owner added.

    Names that make a program load or run something else are out of reach even for the owner's
    list: a workspace's command would otherwise carry another one inside it.
    """
    if name.upper() in _NEVER or name.upper().startswith(_LOADERS):
        return False
    return name in SETTABLE or name.startswith(SETTABLE_PREFIX) or name in owner


def compose(
    base: Mapping[str, str],
    asked: Iterable[tuple[str, str]],
    *,
    owner: Iterable[str],
    command_id: str,
    secrets: Iterable[tuple[str, str]] = (),
    is_bare: bool = False,
) -> Environment:
    """Return *base* with the allowed part of *asked*, *secrets*, and the mark of the command.

    *is_bare*: only the plain part of *base* is taken, for a variable may be a secret. A secret may
    be set under any name that makes no program load or run something else.
    """
    names = frozenset(owner)
    kept = {name: value for name, value in base.items() if not is_bare or _is_plain(name)}
    variables, dropped = kept, set[str]()
    for name, value in asked:
        if may_set(name, names):
            variables[name] = value
        else:
            dropped.add(name)
    for name, value in secrets:
        if may_set(name, (name,)):
            variables[name] = value
        else:
            dropped.add(name)
    variables[COMMAND_VARIABLE] = command_id
    return Environment(variables=variables, dropped=tuple(sorted(dropped)))


def _is_plain(name: str) -> bool:
    return name in PLAIN or name.startswith(SETTABLE_PREFIX)
