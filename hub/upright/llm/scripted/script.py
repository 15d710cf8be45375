"""Script: what a TOML file says of a model's behaviour, checked when it is read.

``include``         names of files beside this one: what they say holds where this one says nothing,
                    and their lists come after this one's
``[agents.NAME]``   ``offers``: tools that are all offered, or ``system``: a pattern
``[heard]``         ``split``: where a part of a user message begins; ``headers``: patterns
``[facts]``         NAME = { kind, at, default? }: the first part heard of a kind, a dotted path
``[names]``         NAME = a template, filled in when it is asked for
``[calls.NAME]``    ``tool`` and ``match`` (on the command line of ``argv``, or the arguments);
                    ``lasting``: one that worked counts over the rounds;
                    ``aside``: never the latest call
``[[rounds]]``      ``after`` (a call) and ``heard``: what makes the work begin again
``[[repairs]]``     ``name``, ``pattern``, ``replace``, and ``output`` that must match
``[[rules]]``       in order; the first whose conditions hold gives the answer
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from upright.llm.scripted.errors import ScriptError
from upright.llm.scripted.repair import Repair
from upright.llm.scripted.view import Headers

T = TypeVar("T")

MAX_INCLUDED: Final = 4
SECTIONS: Final = ("agents", "heard", "facts", "names", "calls", "rounds", "repairs", "rules")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Who is asked, told by the tools offered and by the system message."""

    name: str
    offers: frozenset[str] = frozenset()
    system: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A kind of tool call that rules speak of."""

    name: str
    tool: str
    match: re.Pattern[str]
    lasting: bool = False
    aside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something to be read from what was heard."""

    kind: str
    at: str
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What makes the work begin again: something heard after a call."""

    after: str
    heard: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A condition on a filled-in text: *match* is found in it and *unlike* is not.

    The groups that *match* names are names for the answer.
    """

    value: str
    match: str = ""
    unlike: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Conditions that all must hold, and the answer. Empty conditions hold.

    ``last``: the shapes one of which the latest call has. ``ok``, ``failed``: how the latest
    calls of shapes came out. ``called``, ``uncalled``: shapes. ``latest``: outcomes one of which
    the latest call of any shape has. ``running``: some job has not ended. ``fewer``, ``least``:
    how many calls of a shape, over all rounds, there may not be, and must be. ``heard``: dotted
    paths with patterns that one part must match whole; ``after`` a call of a shape, or ``fresh``:
    since the model spoke. ``each``: answer for every such part. ``quiet``: nothing was heard
    since the model spoke. The answer is ``say``, ``calls``, or calls made by ``read`` (of files
    that failing tests point at) or ``repair``.
    """

    name: str
    agent: str = ""
    last: tuple[str, ...] = ()
    ok: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    uncalled: tuple[str, ...] = ()
    latest: tuple[str, ...] = ()
    running: bool = False
    fewer: Mapping[str, int] | None = None
    least: Mapping[str, int] | None = None
    heard: Mapping[str, str] | None = None
    after: str = ""
    fresh: bool = False
    quiet: bool = False
    each: bool = False
    where: tuple[Where, ...] = ()
    say: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    read: Mapping[str, Any] | None = None
    repair: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole script."""

    agents: tuple[Agent, ...]
    headers: Headers
    facts: Mapping[str, Fact]
    names: Mapping[str, str]
    shapes: Mapping[str, Shape]
    rounds: tuple[Round, ...]
    repairs: tuple[Repair, ...]
    rules: tuple[Rule, ...]


def load(path: Path) -> Script:
    """Read a script's file; ScriptError says what is wrong and where."""
    return _script(_with_included(path, MAX_INCLUDED))


def parse(text: str) -> Script:
    """Read a script; ScriptError says what is wrong and where."""
    return _script(_read("the file", text))


def _with_included(path: Path, depth: int) -> Mapping[str, Any]:
    try:
        data = _read(path.name, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScriptError(path.name, error.strerror or "can't be read") from error
    names = data.pop("include", [])
    if names and not depth:
        raise ScriptError(path.name, "files include each other too deeply")
    for name in names:
        data = _joined(data, _with_included(path.with_name(name), depth - 1))
    return data


def _joined(data: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Put the sections of another script below those of this one."""
    joined = {**other, **data}
    for key in data.keys() & other.keys():
        mine, theirs = data[key], other[key]
        joined[key] = {**theirs, **mine} if isinstance(mine, dict) else [*mine, *theirs]
    return joined


def _read(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScriptError(name, str(error)) from error


def _script(data: Mapping[str, Any]) -> Script:
    if unknown := set(data) - set(SECTIONS):
        raise ScriptError(", ".join(sorted(unknown)), f"no such section; there are {SECTIONS}")
    script = Script(
        agents=tuple(_agent(name, row) for name, row in data.get("agents", {}).items()),
        headers=_headers(data.get("heard", {})),
        facts={
            name: _made(Fact, f"facts.{name}", row) for name, row in data.get("facts", {}).items()
        },
        names=data.get("names", {}),
        shapes={name: _shape(name, row) for name, row in data.get("calls", {}).items()},
        rounds=tuple(_made(Round, "rounds", row) for row in data.get("rounds", ())),
        repairs=tuple(_repair(row) for row in data.get("repairs", ())),
        rules=tuple(_rule(row) for row in data.get("rules", ())),
    )
    _check_names(script)
    return script


def _made(kind: type[T], where: str, row: Mapping[str, Any]) -> T:
    """Make a value of a table; lists become tuples."""
    try:
        return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})
    except TypeError as error:
        raise ScriptError(where, str(error)) from error


def _pattern(where: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ScriptError(where, f"{error}: {text}") from error


def _agent(name: str, row: Mapping[str, Any]) -> Agent:
    where = f"agents.{name}"
    given = {**row, "offers": frozenset(row.get("offers", ()))}
    if "system" in row:
        given["system"] = _pattern(where, row["system"])
    return _made(Agent, where, {"name": name, **given})


def _headers(row: Mapping[str, Any]) -> Headers:
    split = _pattern("heard.split", row["split"]) if "split" in row else None
    patterns = tuple(_pattern("heard.headers", one) for one in row.get("headers", ()))
    return Headers(split=split, patterns=patterns)


def _shape(name: str, row: Mapping[str, Any]) -> Shape:
    where = f"calls.{name}"
    match = _pattern(where, row.get("match", ""))
    return _made(Shape, where, {**row, "name": name, "match": match})


def _repair(row: Mapping[str, Any]) -> Repair:
    where = f"repairs.{row.get('name', '?')}"
    made = {key: _pattern(where, row[key]) for key in ("pattern", "output") if key in row}
    return _made(Repair, where, {**row, **made})


def _rule(row: Mapping[str, Any]) -> Rule:
    where = f"rules.{row.get('name', '?')}"
    wheres = [_made(Where, where, item) for item in row.get("where", ())]
    return _made(Rule, where, {**row, "where": wheres})


def _check_names(script: Script) -> None:
    """Refuse rules that speak of agents or calls which the script does not define."""
    agents = {agent.name for agent in script.agents}
    for rule in script.rules:
        where = f"rules.{rule.name}"
        if rule.agent and rule.agent not in agents:
            raise ScriptError(where, f"no such agent: {rule.agent}")
        lists = (rule.last, rule.ok, rule.failed, rule.called, rule.uncalled)
        named = {name for names in lists for name in names}
        named |= {*(rule.fewer or ()), *(rule.least or ()), *([rule.after] if rule.after else [])}
        if unknown := named - set(script.shapes):
            raise ScriptError(where, f"no such calls: {', '.join(sorted(unknown))}")
