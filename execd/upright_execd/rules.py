"""Rules: may this command run here? One table of the owner's mode and the place; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upright_execd.confinement import WITHOUT_SECRETS
from upright_execd.settings import Mode
from upright_wire.spec import Confinement


class Place(StrEnum):
    """Where a command wants to run."""

    WORKSPACE = "workspace"  # in a listed workspace, or in its folder of worktrees
    ELSEWHERE = "elsewhere"


class Hold(StrEnum):
    """How firmly it is held there."""

    READING = "reading"  # it can change nothing
    CONFINED = "confined"
    FREE = "free"


class Verdict(StrEnum):
    """What the rules say."""

    RUN = "run"
    ASK = "ask"
    DENY = "deny"


class Rule(StrEnum):
    """The rule that decided; the hub and the audit log are told this name."""

    MODE_OFF = "mode_off"
    MODE_READ_ONLY = "mode_read_only"
    MODE_FULL = "mode_full"
    WORKSPACE_ALLOWED = "workspace_allowed"
    WORKSPACE_CONFINED = "workspace_confined"
    UNCONFINED = "unconfined"
    OUTSIDE_WORKSPACES = "outside_workspaces"
    ARGV_ALLOWED = "argv_allowed"
    CONFINEMENT_UNAVAILABLE = "confinement_unavailable"
    SECRETS = "secrets"
    SECRETS_CONFINED = "secrets_confined"
    SECRETS_UNKNOWN = "secrets_unknown"
    SPOOL_FULL = "spool_full"
    OWNER_ALLOWED = "owner_allowed"
    OWNER_DENIED = "owner_denied"
    OWNER_SILENT = "owner_silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A verdict and the rule behind it."""

    verdict: Verdict
    rule: Rule


def _run(rule: Rule) -> Decision:
    return Decision(verdict=Verdict.RUN, rule=rule)


def _ask(rule: Rule) -> Decision:
    return Decision(verdict=Verdict.ASK, rule=rule)


def _deny(rule: Rule) -> Decision:
    return Decision(verdict=Verdict.DENY, rule=rule)


_READ, _HELD, _FREE = Hold.READING, Hold.CONFINED, Hold.FREE
_IN, _OUT = Place.WORKSPACE, Place.ELSEWHERE
TABLE: Final[Mapping[tuple[Mode, Place, Hold], Decision]] = {
    **{(Mode.OFF, place, hold): _deny(Rule.MODE_OFF) for place in Place for hold in Hold},
    **{
        (Mode.READ_ONLY, place, hold): _deny(Rule.MODE_READ_ONLY)
        for place in Place
        for hold in Hold
    },
    (Mode.READ_ONLY, _IN, _READ): _run(Rule.WORKSPACE_CONFINED),
    **{(Mode.ASK, _OUT, hold): _ask(Rule.OUTSIDE_WORKSPACES) for hold in Hold},
    (Mode.ASK, _IN, _READ): _run(Rule.WORKSPACE_CONFINED),
    (Mode.ASK, _IN, _HELD): _run(Rule.WORKSPACE_CONFINED),
    (Mode.ASK, _IN, _FREE): _ask(Rule.UNCONFINED),
    **{(Mode.ALLOW, _OUT, hold): _ask(Rule.OUTSIDE_WORKSPACES) for hold in Hold},
    **{(Mode.ALLOW, _IN, hold): _run(Rule.WORKSPACE_ALLOWED) for hold in Hold},
    **{(Mode.FULL, place, hold): _run(Rule.MODE_FULL) for place in Place for hold in Hold},
}
"""Whole; each mode allows at least what the one before it does."""

_HOLDS: Final[Mapping[Confinement, Hold]] = {
    Confinement.NONE: _FREE,
    Confinement.READ_ONLY: _READ,
    Confinement.WORKSPACE: _HELD,
    Confinement.WORKSPACE_NO_NETWORK: _HELD,
}


def decide(
    mode: Mode,
    place: Place,
    confinement: Confinement,
    enforceable: Collection[Confinement],
    *,
    is_allowed: bool = False,
    has_secrets: bool = False,
) -> Decision:
    """Judge one command.

    A profile that can't be enforced is denied whatever the mode: it never runs without it.
    *is_allowed*: a rule of the owner lets this argv run; it turns a question into a yes, and never
    a no. *has_secrets*: the command asks for secrets of the owner; a profile that keeps them away
    from it denies that, and in mode ``ask`` the owner is asked.
    """
    decision = TABLE[mode, place, _HOLDS[confinement]]
    if mode is not Mode.OFF and confinement not in enforceable:
        return _deny(Rule.CONFINEMENT_UNAVAILABLE)
    if has_secrets and mode is not Mode.OFF and confinement in WITHOUT_SECRETS:
        return _deny(Rule.SECRETS_CONFINED)
    if has_secrets and mode is Mode.ASK and decision.verdict is Verdict.RUN:
        return _ask(Rule.SECRETS)
    if is_allowed and decision.verdict is Verdict.ASK:
        return _run(Rule.ARGV_ALLOWED)
    return decision
