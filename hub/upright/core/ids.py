"""Ids: one type for each kind of thing, told apart by a short prefix in the text."""

from __future__ import annotations

from typing import Final, NewType

TriggerId = NewType("TriggerId", str)
ThreadId = NewType("ThreadId", str)
SessionId = NewType("SessionId", str)
WorkId = NewType("WorkId", str)
WaitId = NewType("WaitId", str)
JobId = NewType("JobId", str)
OutboxId = NewType("OutboxId", str)
RequestId = NewType("RequestId", str)
DeviceId = NewType("DeviceId", str)
TurnId = NewType("TurnId", str)
WatchId = NewType("WatchId", str)
MemoryId = NewType("MemoryId", str)

PREFIXES: Final = {
    "trigger": "tr",
    "thread": "th",
    "session": "se",
    "work": "wk",
    "wait": "wt",
    "job": "jb",
    "outbox": "ob",
    "request": "rq",
    "device": "dv",
    "turn": "tu",
    "watch": "wa",
    "memory": "mm",
    "payload": "pl",
    "account": "ac",
    "sign_in": "si",
    "token": "tk",
    "hub": "hb",
}


def kind_of(text: str) -> str | None:
    """Return the kind that an id (or the beginning of one) names; None when it names none."""
    prefix, dash, _ = text.partition("_")
    kinds = {short: kind for kind, short in PREFIXES.items()}
    return kinds.get(prefix) if dash else None
