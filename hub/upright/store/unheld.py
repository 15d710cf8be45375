"""Unheld: a person's answer to a question about what holds work: a spent budget, a model."""

from __future__ import annotations

import json
from typing import Final

from upright.core.budget import Key, Scope
from upright.store import budgets, endpoints
from upright.store.holds import SUBJECT
from upright.store.requests import Asked
from upright.store.unit import Unit

NO: Final = frozenset({"n", "no", "stop"})


def answered(u: Unit, asked: Asked, text: str, by: str) -> bool:
    """Let work go on, unless the answer is a no; False when the question is about something else.

    A budget is granted once more; an endpoint is tried again.
    """
    subject = json.loads(asked.subject_json)
    ref = subject.get(SUBJECT) if isinstance(subject, dict) else None
    if not isinstance(ref, str):
        return False
    if text.strip().lower().rstrip(".!") in NO:
        return True
    if ref.startswith(endpoints.REF):
        endpoints.retry(u, ref.removeprefix(endpoints.REF), by)
        return True
    _, scope, name = ref.split(":", 2)
    budgets.grant(u, Key(Scope(scope), name), by)
    return True
