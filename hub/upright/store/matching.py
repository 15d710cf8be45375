"""Matching: what a trigger on a thread does to the waits of an item (B11.4)."""

from __future__ import annotations

from upright.core.trigger import StoredTrigger
from upright.core.wait import Outcome, WaitKind, Wake
from upright.store import requests, threads, waits
from upright.store.events import About, record
from upright.store.unit import Unit


def match_external(u: Unit, work_id: str, stored: StoredTrigger) -> None:
    """Match a trigger with an item's waits for its thread or a linked one; note what came of it.

    What the hub itself says is no news of the thread.
    """
    for thread in (stored.thread, *threads.linked(u.c, stored.thread)):
        found = waits.settle(u.c, work_id, Wake(kind=WaitKind.EXTERNAL, ref=thread))
        if found.outcome is Outcome.NONE:
            continue
        about = About(trigger_id=stored.id, work_id=work_id)
        record(u, "wait.matched", about, {"outcome": found.outcome, "thread": thread})
        if found.outcome is Outcome.AMBIGUOUS:
            _ask_which(u, work_id, stored)
        if found.outcome is Outcome.MATCH:
            return


def _ask_which(u: Unit, work_id: str, stored: StoredTrigger) -> None:
    """Let the operator see a trigger that fits several waits; it holds up nothing (B11.4)."""
    prompt = (
        f"{stored.id} ({stored.trigger.kind}) fits more than one wait of {work_id}: it was kept "
        "as context. `upright wait ls` shows them; `upright wait wake ID` ends one."
    )
    requests.ask(u, requests.Asking(prompt=prompt, work=work_id))
