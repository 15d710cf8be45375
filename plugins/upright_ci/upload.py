"""Upload: a report of tests, posted by a job, becomes one trigger.

What the report does not say stands in the query, or in headers that begin with ``X-CI-``:
``repository``, ``branch``, ``sha``, ``number``, ``url``, ``check``, ``attempt``, ``id``, ``fork``,
and ``at``, when it ended: the times in reports have no zone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from upright.api import Actor, ActorKind, InboundRequest, Trigger, TriggerRejectedError
from upright.kit import ci
from upright.kit.payload import CODE, clean
from upright_ci import junit, told
from upright_ci.keys import Place

WORDS: Final = (
    "repository",
    "branch",
    "sha",
    "number",
    "url",
    "check",
    "attempt",
    "id",
    "fork",
    "at",
)
MAX_WORD_CHARS: Final = 1_000
_ACTOR: Final = Actor(id="app:junit", name="tests", kind=ActorKind.BOT)


def said(request: InboundRequest) -> dict[str, str]:
    """Return what the query and the headers say; the query goes before.

    Raises:
        TriggerRejectedError: 400: a word is too long.
    """
    found = {
        word: clean(request.query.get(word) or request.headers.get(f"x-ci-{word}", "")).strip()
        for word in WORDS
    }
    for word, value in found.items():
        if len(value) > MAX_WORD_CHARS:
            reason = f"{word} is too long"
            raise TriggerRejectedError(reason, code=CODE)
    return found


def number(words: Mapping[str, str], word: str) -> int | None:
    """Return a whole number above 0, if there is one.

    Raises:
        TriggerRejectedError: 400: it is none.
    """
    text = words[word]
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text)):
        reason = f"{word} must be a whole number above 0"
        raise TriggerRejectedError(reason, code=CODE)
    return int(text)


def moment(words: Mapping[str, str]) -> datetime | None:
    """Return when it ended, if anybody says.

    Raises:
        TriggerRejectedError: 400: it is no time with a zone.
    """
    if not words["at"]:
        return None
    try:
        at = datetime.fromisoformat(words["at"])
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        reason = "at must be a time such as 2026-06-01T10:00:00+00:00"
        raise TriggerRejectedError(reason, code=CODE)
    return at


def trigger(report: junit.Report, words: Mapping[str, str], place: Place, body: bytes) -> Trigger:
    """Return the one trigger of a report: which tests failed, and why."""
    kind, conclusion = _verdict(report)
    run = ci.Run(
        check=words["check"] or report.name or "tests",
        repository=place.repository,
        status="completed",
        conclusion=conclusion,
        branch=words["branch"],
        sha=words["sha"],
        number=number(words, "number"),
        attempt=number(words, "attempt"),
        url=words["url"],
        failures=report.failures,
    )
    unknown = not (run.branch or run.number)  # an unknown head counts as a fork
    telling = told.Telling(
        place=place,
        actor=_ACTOR,
        at=moment(words),
        dedupe=(_key(run, words, body),),
        text=report.summary,
        fork=words["fork"].lower() in {"yes", "true", "1"} or unknown,
        facts={
            "tests": str(report.tests),
            "failed_tests": str(len(report.failures)),
            "flaky": ci.named(report.flaky),
        },
    )
    return told.trigger(kind, run, telling)


def _verdict(report: junit.Report) -> tuple[str, str]:
    if report.failures:
        return ci.FAILED, "failure"
    return (ci.SUCCEEDED, "success") if report.tests else (ci.NEUTRAL, "no tests")


def _key(run: ci.Run, words: Mapping[str, str], body: bytes) -> str:
    """Return the key of an upload: the same report of the same run is told once."""
    which = "\n".join((run.repository, run.check, run.branch, run.sha, words["id"]))
    digest = hashlib.sha256(which.encode("utf-8", "replace") + b"\0" + body).hexdigest()
    return f"junit:{digest}:{run.attempt or 1}"
