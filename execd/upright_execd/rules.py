"""Rules: may this command run here? One table of the owner's mode and the place; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upright_execd.settings import Mode
from upright_wire.spec import Confinement


class Place(StrEnum):
    """Where a command wants to run."""

    WORKSPACE = "workspace"  # in a listed workspace, or in its folder of worktrees
    ELSEWHERE = "elsewhere"


class Verdict(StrEnum):
    """What the rules say."""

    RUN = "run"
    ASK = "ask"
    DENY = "deny"


class Rule(StrEnum):
    """The rule that decided; the hub and the audit log are told this name."""

    MODE_OFF = "mode_off"
    MODE_ASK = "mode_ask"
    MODE_RESERVED = "mode_reserved"
    WORKSPACE_ALLOWED = "workspace_allowed"
    OUTSIDE_WORKSPACES = "outside_workspaces"
    CONFINEMENT_UNAVAILABLE = "confinement_unavailable"
    SPOOL_FULL = "spool_full"
    OWNER_ALLOWED = "owner_allowed"
    OWNER_DENIED = "owner_denied"
    OWNER_SILENT = "owner_silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A verdict and the rule behind it."""

    verdict: Verdict
    rule: Rule


_TABLE: Final[Mapping[tuple[Mode, Place], Decision]] = {
    (Mode.ASK, Place.WORKSPACE): Decision(verdict=Verdict.ASK, rule=Rule.MODE_ASK),
    (Mode.ASK, Place.ELSEWHERE): Decision(verdict=Verdict.ASK, rule=Rule.OUTSIDE_WORKSPACES),
    (Mode.ALLOW, Place.WORKSPACE): Decision(verdict=Verdict.RUN, rule=Rule.WORKSPACE_ALLOWED),
    (Mode.ALLOW, Place.ELSEWHERE): Decision(verdict=Verdict.ASK, rule=Rule.OUTSIDE_WORKSPACES),
    (Mode.OFF, Place.WORKSPACE): Decision(verdict=Verdict.DENY, rule=Rule.MODE_OFF),
    (Mode.OFF, Place.ELSEWHERE): Decision(verdict=Verdict.DENY, rule=Rule.MODE_OFF),
}


def decide(
    mode: Mode, place: Place, confinement: Confinement, enforceable: Collection[Confinement]
) -> Decision:
    """Judge one command; what the table doesn't know is denied.

    A profile that can't be enforced is denied whatever the mode: it never runs without it.
    """
    if mode is not Mode.OFF and confinement not in enforceable:
        return Decision(verdict=Verdict.DENY, rule=Rule.CONFINEMENT_UNAVAILABLE)
    reserved = Decision(verdict=Verdict.DENY, rule=Rule.MODE_RESERVED)
    return _TABLE.get((mode, place), reserved)
