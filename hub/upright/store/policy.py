"""Policy: what intake decides by, made of the configuration and of what people have changed since.

Whoever takes triggers in keeps a copy and looks, in the transaction of each batch, whether it is
still the newest: a change holds from the next trigger on, whole, in every process (B3.4).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from upright.core.fold import QUIET, Quiet
from upright.core.gate import DEFAULT_RULES, Mode, Rule, Rules
from upright.core.routing import PassThrough
from upright.core.trigger import People
from upright.settings.rules import read_rules
from upright.store import persons, rules
from upright.store.intake import Policy
from upright.store.unit import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What the configuration alone says; it changes with a restart."""

    modes: tuple[tuple[str, Mode], ...]
    people: People
    routes: bool
    passes: PassThrough = PassThrough.ALL
    spill_bytes: int = 0
    quiet: Quiet = QUIET


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A policy, and by which versions of rules and people it was made."""

    number: int
    mark: str
    policy: Policy


def current(c: Connection, base: Base, held: Held | None = None) -> Held:
    """Return the policy that holds now: *held* itself when nothing has changed.

    Raises:
        SettingsError: the stored rules can't be read; none are stored that can't.
    """
    number, mark = rules.newest(c), persons.mark(c)
    if held is not None and (held.number, held.mark) == (number, mark):
        return held
    text = rules.read(c, number).text if number else ""
    own = read_rules(text, origin=f"version {number} of the rules")
    policy = Policy(
        rules=gate_rules(own, number, base.modes),
        people=persons.known(c, base.people),
        routes=base.routes,
        passes=base.passes,
        spill_bytes=base.spill_bytes,
        quiet=base.quiet,
    )
    return Held(number=number, mark=mark, policy=policy)


def gate_rules(own: tuple[Rule, ...], number: int, modes: tuple[tuple[str, Mode], ...]) -> Rules:
    """Put a version before the built-in rules.

    The version that a verdict names is its number with a digest of all that the verdict can
    depend on: built-in rules change with the program, modes with the configuration.
    """
    ordered = (*own, *DEFAULT_RULES)
    digest = hashlib.sha256(repr((ordered, modes)).encode()).hexdigest()[:8]
    return Rules(version=f"{number}.{digest}", rules=ordered, modes=modes)
