"""Generic: any JSON becomes a run, by a mapping of dotted paths and a table of verdicts.

Buildbot, Jenkins and Buildkite are such mappings, too; see :mod:`upright_ci.presets`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from upright.api import Actor, ActorKind, Trigger, TriggerRejectedError
from upright.kit import ci
from upright.kit.payload import CODE, clean
from upright_ci import told
from upright_ci.keys import Place
from upright_ci.settings import Mapped

MAX_JOBS: Final = 1_000
MAX_CHARS: Final = 65_536
UNDER_WAY: Final = frozenset({ci.QUEUED, ci.STARTED})
# What senders of all sorts say, in lower case.
WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("queued", "pending", "created", "scheduled", "waiting"), ci.QUEUED),
    **dict.fromkeys(("started", "running", "in_progress", "building"), ci.STARTED),
    **dict.fromkeys(("success", "succeeded", "passed", "ok", "fixed", "stable"), ci.SUCCEEDED),
    **dict.fromkeys(
        ("failure", "failed", "error", "errored", "broken", "timed_out", "still failing"), ci.FAILED
    ),
    **dict.fromkeys(("cancelled", "canceled", "aborted", "killed", "stopped"), ci.CANCELLED),
    **dict.fromkeys(("skipped", "not_run"), ci.SKIPPED),
    **dict.fromkeys(("neutral", "unstable", "warnings"), ci.NEUTRAL),
    **dict.fromkeys(("blocked", "action_required", "manual"), ci.ACTION_REQUIRED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How one source's payloads are read.

    ``verdicts`` goes before :data:`WORDS`; ``log`` makes plain text of a job's log.
    """

    provider: str
    mapping: Mapped
    verdicts: Mapping[str, str]
    log: Callable[[str], str] = str

    def kind(self, verdict: str) -> str:
        """Return the kind of a verdict; of one that nobody knows, ``ci.completed``."""
        word = verdict.strip().lower()
        own = self.verdicts.get(word) or self.verdicts.get(verdict)
        if own:
            return own if own.startswith("ci.") else f"ci.{own}"
        return WORDS.get(word, ci.COMPLETED)


def decode(body: bytes) -> object:
    """Return a body's JSON.

    Raises:
        TriggerRejectedError: 400: it is none.
    """
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        reason = "The body is not JSON"
        raise TriggerRejectedError(reason, code=CODE) from error
    return value


def dig(payload: object, paths: str) -> object:
    """Return what stands at the first of some dotted paths that leads anywhere; else None."""
    for path in filter(None, (one.strip() for one in paths.split("|"))):
        found: object = payload
        for step in path.split("."):
            if isinstance(found, Mapping):
                found = found.get(step)
            elif isinstance(found, list) and step.isascii() and step.isdigit():
                found = found[int(step)] if int(step) < len(found) else None
            else:
                found = None
        if found is not None and not isinstance(found, Mapping | list):
            return found
    return None


def text(payload: object, paths: str) -> str:
    """Return what stands there as a bounded text; true and false in lower case."""
    found = dig(payload, paths)
    if found is None:
        return ""
    said = str(found).lower() if isinstance(found, bool) else str(found)
    return clean(said[:MAX_CHARS]).strip()


def end(payload: object, paths: str) -> str:
    """Return the end of a long text, whole lines: there a log says why."""
    found = dig(payload, paths)
    if not isinstance(found, str):
        return ""
    tail = found[-MAX_CHARS:]
    return clean(tail if len(tail) == len(found) else tail.partition("\n")[2])


def repository_of(payload: object, mapping: Mapped) -> str:
    """Return the repository's full name; of an address its path."""
    return text(payload, mapping.repository) or _path(text(payload, mapping.clone))


def _path(address: str) -> str:
    parts = urlsplit(address)
    path = parts.path if parts.scheme else address.rpartition(":")[2]
    return path.strip("/").removesuffix(".git")


def items(payload: object, path: str) -> list[object]:
    """Return the list at a path; none when there is none."""
    found: object = payload
    for step in path.split(".") if path else ():
        found = found.get(step) if isinstance(found, Mapping) else None
    return found[:MAX_JOBS] if path and isinstance(found, list) else []


def trigger(payload: object, reading: Reading, place: Place, check: str) -> Trigger:
    """Return the trigger of one state of a run.

    Raises:
        TriggerRejectedError: 400: there is no id or no verdict where the mapping says.
    """
    mapping = reading.mapping
    verdict, which = text(payload, mapping.verdict), text(payload, mapping.id)
    if not verdict or not which:
        where = mapping.verdict if not verdict else mapping.id
        reason = f"The payload has nothing at {where}"
        raise TriggerRejectedError(reason, code=CODE)
    kind, url = reading.kind(verdict), text(payload, mapping.url)
    under_way, branch = kind in UNDER_WAY, _branch(text(payload, mapping.branch))
    at, said = _moment(dig(payload, mapping.at)), text(payload, mapping.text)
    run = ci.Run(
        check=text(payload, mapping.check) or check or reading.provider,
        repository=place.repository,
        status=kind.removeprefix("ci.") if under_way else "completed",
        conclusion="" if under_way else kind.removeprefix("ci."),
        branch=branch,
        sha=text(payload, mapping.sha),
        number=_number(text(payload, mapping.number)),
        attempt=_number(text(payload, mapping.attempt)),
        url=url if url.startswith(("https://", "http://")) else "",
        failures=_failures(payload, reading, said) if kind == ci.FAILED else (),
    )
    telling = told.Telling(
        place=place,
        actor=Actor(id=f"app:{reading.provider}", name=reading.provider, kind=ActorKind.BOT),
        at=at,
        dedupe=(_key(run, which, kind, place),),
        text=said,
        urls=tuple(filter(None, (text(payload, mapping.clone),))),
        fork=not (run.branch or run.number),  # an unknown head counts as a fork
        facts={"verdict": verdict, "run": which},
    )
    return told.trigger(kind, run, telling)


def _key(run: ci.Run, which: str, kind: str, place: Place) -> str:
    """Return the key of this state: senders tell one end more than once."""
    digest = hashlib.sha256(which.encode()).hexdigest()[:32] if len(which) > 100 else which
    return f"run:{place.base}:{run.check}:{digest}:{run.attempt or 1}:{kind}"


def _failures(payload: object, reading: Reading, said: str) -> tuple[ci.Failure, ...]:
    jobs, found = reading.mapping.jobs, list[ci.Failure]()
    for job in items(payload, jobs.at):
        if reading.kind(text(job, jobs.verdict)) == ci.FAILED:
            lines = ci.first_errors(reading.log(end(job, jobs.text))) if jobs.text else ()
            found.append(ci.Failure(name=text(job, jobs.name) or "(no name)", lines=lines))
    if not found and said:
        check = text(payload, reading.mapping.check) or reading.provider
        return (ci.Failure(name=check, lines=ci.first_errors(said)),)
    return tuple(found)


def _branch(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("origin/")


def _number(said: str) -> int | None:
    return int(said) if said.isascii() and said.isdigit() and 0 < len(said) < 12 else None


def _moment(found: object) -> datetime | None:
    """Return an aware time: ISO 8601, or seconds or milliseconds since 1970."""
    try:
        if isinstance(found, int | float) and not isinstance(found, bool):
            seconds = found / 1000 if found > 1e11 else found
            return datetime.fromtimestamp(seconds, UTC)
        if isinstance(found, str) and found:
            at = datetime.fromisoformat(found)
            return at if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None
