"""Status: what the running daemon tells its owner, as JSON values."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from upright_execd import argvrules, shown
from upright_execd.argvrules import ArgvRule
from upright_execd.consent import Consent, Question
from upright_execd.house import House
from upright_execd.ports import Snapshot
from upright_wire.plain import to_plain
from upright_wire.version import __version__


def status(house: House, commands: Iterable[Snapshot], link: str) -> dict[str, Any]:
    """Return how the daemon is."""
    rules = house.rules()
    return {
        "pid": os.getpid(),
        "version": __version__,
        "mode": rules.settings.mode.value,
        "problem": rules.problem,
        "link": link,
        "workspaces": [{"path": str(w.path), "label": w.label} for w in rules.workspaces],
        "questions": len(house.consent.questions()),
        "commands": [to_plain(command) for command in commands],
    }


def _rule(question: Question) -> dict[str, Any] | str:
    """Return the rule that "always" would make, or why it is not offered."""
    if question.env or question.secrets or question.stdin_bytes:
        return "it brings input or variables of its own"
    return argvrules.why_never(question.program, question.argv) or argvrules.as_row(
        ArgvRule(
            program=question.program,
            argv=question.argv,
            cwd=question.cwd,
            confinement=question.confinement,
        )
    )


def questions(consent: Consent) -> list[dict[str, Any]]:
    """Return what waits for the owner, argv and cwd as they may be shown."""
    return [
        {
            "command_id": question.command_id,
            "digest": question.digest,
            "argv": shown.argv(question.argv),
            "cwd": shown.text(question.cwd),
            "env": [shown.text(f"{name}={value}") for name, value in question.env],
            "secrets": [shown.text(f"{name} from {kept}") for name, kept in question.secrets],
            "stdin_bytes": question.stdin_bytes,
            "program": shown.text(question.program),
            "confinement": question.confinement.value,
            "always": _rule(question),
            "reason": question.reason.value,
        }
        for question in consent.questions()
    ]
