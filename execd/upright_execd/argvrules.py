"""Argv rules: what the owner lets run unasked, by the program's real path and its arguments."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright_execd.errors import DamagedError, NotFoundError, SettingsError
from upright_execd.paths import make_private, write_private
from upright_wire.spec import Confinement

ONE: Final = "*"
"""Stands for one argument, whatever it is."""
REST: Final = "**"
"""At the end: stands for all arguments that follow, none too."""

_SHELLS: Final = "sh bash dash zsh ksh mksh fish csh tcsh ash rbash pwsh nu elvish xonsh"
_LANGUAGES: Final = (
    "python pythonw pypy perl ruby node nodejs deno bun php lua luajit tclsh wish expect osascript "
    "awk gawk mawk nawk sed ed ex vi vim nvim emacs irb ipython java jshell groovy ghc runghc "
    "Rscript R julia guile racket sbcl erl elixir iex"
)
_CARRIERS: Final = (
    "env nice ionice chrt taskset timeout time nohup setsid stdbuf unbuffer script xargs find fd "
    "parallel sudo doas su runuser pkexec setpriv capsh chroot unshare nsenter bwrap firejail "
    "systemd-run at batch crontab flock watch entr strace ltrace gdb lldb perf valgrind rr ssh "
    "docker podman kubectl make gmake ninja npx npm pnpm yarn uvx uv pipx poetry tox nox cargo go "
    "busybox toybox ld.so ld-linux start-stop-daemon run-parts rlwrap tmux screen dtach socat nc"
)
WRAPPERS: Final = frozenset(f"{_SHELLS} {_LANGUAGES} {_CARRIERS}".split())
"""Programs whose arguments are programs: to allow one of them would be to allow anything."""
_VERSION: Final = re.compile(r"[-.\d]*$")
_LOADER: Final = re.compile(r"ld(-linux.*|\.so.*|-musl.*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgvRule:
    """One rule. ``argv`` may hold ONE anywhere behind the first word, and REST at its end.

    ``cwd`` is the folder where it holds, empty: everywhere; ``confinement`` None: every profile.
    """

    program: str
    argv: tuple[str, ...]
    cwd: str = ""
    confinement: Confinement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A command as rules see it; ``program`` is the real path of what would run, or empty."""

    program: str
    argv: tuple[str, ...]
    cwd: str
    confinement: Confinement
    has_env: bool = False
    has_stdin: bool = False


# ------------------------------------------------------------------ judging
def is_wrapper(program: str) -> bool:
    """Say whether this program runs what its arguments say; versions in its name don't hide it."""
    name = Path(program).name
    stem = _VERSION.sub("", name)
    return bool({name, stem} & WRAPPERS) or _LOADER.fullmatch(name) is not None


def why_never(program: str, argv: Sequence[str]) -> str:
    """Return why no rule may let this run unasked; empty: one may."""
    if not program:
        return "there is no such program"
    for name in (program, argv[0]):
        if is_wrapper(name):
            return f"{name} runs whatever its arguments say"
    return ""


def allows(rules: Iterable[ArgvRule], call: Call) -> bool:
    """Say whether a rule lets this call run unasked.

    One that brings input or variables of its own is never let: they are not in the rule.
    """
    if why_never(call.program, call.argv) or call.has_env or call.has_stdin:
        return False
    return any(_matches(rule, call) for rule in rules)


def _matches(rule: ArgvRule, call: Call) -> bool:
    return (
        rule.program == call.program
        and rule.cwd in {"", call.cwd}
        and rule.confinement in {None, call.confinement}
        and _fits(rule.argv, call.argv)
    )


def _fits(pattern: Sequence[str], argv: Sequence[str]) -> bool:
    if pattern[-1:] == (REST,):
        return len(argv) >= len(pattern) - 1 and _fits(pattern[:-1], argv[: len(pattern) - 1])
    if len(pattern) != len(argv):
        return False
    return all(wanted in {ONE, given} for wanted, given in zip(pattern, argv, strict=True))


def program(name: str, path: str, cwd: int) -> str:
    """Return the real path of the program that *name* means in the open folder *cwd*.

    It is looked for as ``execvp`` does, in the folders of *path*; empty: there is none. Blocks.
    """
    here = f"{'/proc/self' if Path('/proc/self/fd').is_dir() else '/dev'}/fd/{cwd}"
    places = [""] if "/" in name else (path or os.defpath).split(os.pathsep)
    for place in places:
        found = Path(here, place, name)
        if os.access(found, os.X_OK) and found.is_file():
            return os.path.realpath(found)
    return ""


# ------------------------------------------------------------------ the list
def listed(file: Path) -> tuple[ArgvRule, ...]:
    """Read the rules; no file, no rules.

    Raises:
        DamagedError: it isn't what ``execd rules`` writes.
        SettingsError: a rule that may not be is in it.
    """
    try:
        rows = json.loads(file.read_bytes())["rules"]
        rules = tuple(from_row(row) for row in rows)
    except FileNotFoundError:
        return ()
    except (ValueError, KeyError, TypeError) as error:
        sentence = f"{file} can't be read as a list of rules."
        raise DamagedError(sentence, advice="Delete it and add the rules anew.") from error
    for rule in rules:
        _check(rule)
    return rules


def add(file: Path, rule: ArgvRule) -> None:
    """Put a rule on the list; one that is there already stays there once.

    Raises:
        SettingsError: it may not be.
    """
    _check(rule)
    rules = listed(file)
    if rule not in rules:
        _write(file, [*rules, rule])


def remove(file: Path, number: int) -> ArgvRule:
    """Take the rule with this number (from 1) off the list.

    Raises:
        NotFoundError: there is none.
    """
    rules = list(listed(file))
    if not 1 <= number <= len(rules):
        sentence = f"There is no rule {number}."
        raise NotFoundError(sentence, advice="Run: execd rules ls")
    removed = rules.pop(number - 1)
    _write(file, rules)
    return removed


def _check(rule: ArgvRule) -> None:
    is_sound = Path(rule.program).is_absolute() and rule.argv and REST not in rule.argv[:-1]
    reason = why_never(rule.program, rule.argv) if is_sound else "it is no program and its argv"
    if reason or rule.argv[0] in {ONE, REST}:
        sentence = f"No rule may allow {rule.program}: {reason or 'its first word is open'}."
        raise SettingsError(sentence, advice="Allow it each time: execd consent")


def as_row(rule: ArgvRule) -> dict[str, object]:
    """Return a rule as JSON values."""
    return {
        "program": rule.program,
        "argv": list(rule.argv),
        "cwd": rule.cwd,
        "confinement": rule.confinement,
    }


def from_row(row: Mapping[str, object]) -> ArgvRule:
    """Read :func:`as_row`.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    argv, profile = row["argv"], row.get("confinement")
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        raise TypeError(argv)
    return ArgvRule(
        program=str(row["program"]),
        argv=tuple(argv),
        cwd=str(row.get("cwd", "")),
        confinement=None if profile is None else Confinement(str(profile)),
    )


def _write(file: Path, rules: Iterable[ArgvRule]) -> None:
    make_private(file.parent)
    rows = [as_row(rule) for rule in rules]
    write_private(file, json.dumps({"rules": rows}, indent=2).encode())
