"""Translation: which event becomes a trigger, as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from upright.api import Trigger
from upright_github import ci, code, talk
from upright_github.event import Event, Identity
from upright_github.keys import Place
from upright_github.webhook import Delivery

TABLE: Final[Mapping[str, Callable[[Event], Trigger]]] = {
    "check_run": ci.check_run,
    "issue_comment": talk.issue_comment,
    "issues": talk.issues,
    "pull_request": code.pull_request,
    "pull_request_review": talk.review,
    "pull_request_review_comment": talk.review_comment,
    "push": code.push,
    "workflow_run": ci.workflow_run,
}


def translate(
    delivery: Delivery, *, source: str, me: Identity, only: frozenset[str]
) -> tuple[Trigger, ...]:
    """Return the triggers of a delivery: none for an event, or a repository, that is not ours.

    *only* holds full names in lower case; empty, it takes every repository.

    Raises:
        TriggerRejectedError: the payload of a known event lacks what that event always has.
    """
    make = TABLE.get(delivery.event)
    if make is None:
        return ()
    payload = delivery.payload
    place = Place.of(payload.part("repository"))
    if only and place.repository.lower() not in only:
        return ()
    action = payload.maybe_text("action")
    made = make(Event(source=source, action=action, payload=payload, place=place, me=me))
    keys = (f"delivery:{delivery.guid}", *made.dedupe)
    return (replace(made, dedupe=keys, raw=delivery.raw, raw_type=delivery.raw_type),)
