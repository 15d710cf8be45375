"""Gate: the fast path. A pure function of (rules, trigger); no model is asked (B3)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from upright.api import ActorKind, Address, Trigger
from upright.core.trigger import Origin


class Verdict(StrEnum):
    """What a rule says of a trigger."""

    EXPLICIT = "explicit"
    CANDIDATE = "candidate"
    IGNORE = "ignore"


class Mode(StrEnum):
    """What a source may bring at all."""

    EXPLICIT_ONLY = "explicit_only"
    CANDIDATES = "candidates"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule: every field that is given must match; an empty field matches anything.

    ``kinds`` and ``scopes`` are globs (``*`` and ``?``), over the trigger's kind and over its
    repository. ``facts`` are (name, glob) pairs; of several facts of one name (labels), one that
    matches is enough. ``text`` is searched, without case. ``urgent`` is no condition: what the
    rule matches is urgent then.
    """

    name: str
    verdict: Verdict
    sources: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    actor_kinds: tuple[ActorKind, ...] = ()
    actors: tuple[str, ...] = ()
    addresses: tuple[Address, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    text: str = ""
    listed_bots: bool | None = None
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules in their order, under a version; ``modes`` holds (source, mode) pairs."""

    version: str
    rules: tuple[Rule, ...]
    modes: tuple[tuple[str, Mode], ...] = ()

    def mode(self, source: str) -> Mode:
        """Return a source's mode; candidates is the default."""
        return dict(self.modes).get(source, Mode.CANDIDATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, the rule that made it and why, and the version of the rules.

    ``by_mode`` says that *ignore* is the source's ``explicit_only``, no rule: whoever follows the
    thread is woken all the same (B3.3). ``urgent`` is what the rule says, never the text;
    never true of what a rule ignores.
    """

    verdict: Verdict
    rule: str
    reason: str
    version: str
    by_mode: bool = False
    urgent: bool = False


DEFAULT_RULES: Final = (
    Rule(name="own output", verdict=Verdict.IGNORE, actor_kinds=(ActorKind.SELF,)),
    Rule(
        name="CI under way",
        verdict=Verdict.IGNORE,
        kinds=("ci.queued", "ci.started"),
    ),
    Rule(
        name="unknown bot",
        verdict=Verdict.IGNORE,
        actor_kinds=(ActorKind.BOT,),
        listed_bots=False,
    ),
    Rule(
        name="spoken to by one of us",
        verdict=Verdict.EXPLICIT,
        actor_kinds=(ActorKind.OPERATOR, ActorKind.MEMBER),
        addresses=(Address.DIRECT, Address.MENTION),
    ),
    Rule(
        name="the operator speaks",
        verdict=Verdict.EXPLICIT,
        kinds=("operator.*",),
        actor_kinds=(ActorKind.OPERATOR,),
    ),
    Rule(
        name="a stranger",
        verdict=Verdict.CANDIDATE,
        actor_kinds=(ActorKind.STRANGER, ActorKind.CONTACT),
        addresses=(Address.DIRECT, Address.MENTION),
    ),
)
"""What holds behind the rules of the configuration."""


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """Make an expression that can't run away: each inner part is taken where it first fits.

    That is right for globs, and an atomic group never looks back: the time is linear in the
    value for each part, however many stars somebody wrote.
    """
    first, *rest = (_literal(part) for part in re.split(r"\*+", pattern))
    if not rest:
        return re.compile(first, re.DOTALL)
    *inner, last = rest
    middle = "".join(f"(?>.*?{part})" for part in inner)
    return re.compile(f"{first}{middle}.*{last}", re.DOTALL)


def _literal(part: str) -> str:
    return "".join("." if c == "?" else re.escape(c) for c in part)


def _any_glob(patterns: tuple[str, ...], value: str) -> bool:
    return not patterns or any(_glob(pattern).fullmatch(value) for pattern in patterns)


def _one_of(wanted: tuple[object, ...], value: object) -> bool:
    return not wanted or value in wanted


def _has_fact(trigger: Trigger, name: str, glob: str) -> bool:
    facts = trigger.context.facts
    return any(key == name and _any_glob((glob,), value) for key, value in facts)


def matches(rule: Rule, source: str, trigger: Trigger, origin: Origin) -> bool:
    """Say whether every given field of *rule* matches; what costs most is looked at last."""
    return (
        _one_of(rule.sources, source)
        and _by(rule, origin)
        and _of(rule, trigger)
        and all(_has_fact(trigger, name, glob) for name, glob in rule.facts)
        and (not rule.text or _says(trigger, rule.text))
    )


def _by(rule: Rule, origin: Origin) -> bool:
    return (
        _one_of(rule.actor_kinds, origin.actor.kind)
        and _one_of(rule.actors, origin.actor.id)
        and (rule.listed_bots is None or rule.listed_bots == origin.listed)
    )


def _of(rule: Rule, trigger: Trigger) -> bool:
    code = trigger.context.code
    return (
        _one_of(rule.addresses, trigger.context.address)
        and _any_glob(rule.kinds, trigger.kind)
        and _any_glob(rule.scopes, code.repository if code else "")
    )


def _says(trigger: Trigger, text: str) -> bool:
    return text.lower() in f"{trigger.content.title}\n{trigger.content.text}".lower()


def judge(rules: Rules, source: str, trigger: Trigger, origin: Origin) -> Judgement:
    """Judge a trigger: the source's mode, then the first rule that matches, then *candidate*."""
    mode = rules.mode(source)
    if mode is Mode.OFF:
        return _judgement(rules, Verdict.IGNORE, "mode off", "the source is switched off")
    judged = _judgement(rules, Verdict.CANDIDATE, "default", "no rule matched")
    for rule in rules.rules:
        if matches(rule, source, trigger, origin):
            reason = f"{trigger.kind} by {origin.actor.kind} {origin.actor.id}"
            urgent = rule.urgent and rule.verdict is not Verdict.IGNORE
            judged = replace(_judgement(rules, rule.verdict, rule.name, reason), urgent=urgent)
            break
    if judged.verdict is Verdict.CANDIDATE and mode is Mode.EXPLICIT_ONLY:
        reason = f"{judged.reason}; the source takes explicit triggers only"
        return replace(judged, verdict=Verdict.IGNORE, reason=reason, by_mode=True)
    return judged


def _judgement(rules: Rules, verdict: Verdict, name: str, reason: str) -> Judgement:
    return Judgement(verdict=verdict, rule=name, reason=reason, version=rules.version)
