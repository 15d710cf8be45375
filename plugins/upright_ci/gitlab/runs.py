"""Runs: pipelines and jobs of GitLab, as the one shape of CI.

A pipeline is told again on every change of its status, and again when a job is tried once more:
its key is (id, status, when it ended). ``X-Gitlab-Event-UUID`` is no key: events that follow from
another event have the same.

Source: docs.gitlab.com, "Webhook events", "Pipeline events" and "Job events".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from upright.api import Trigger
from upright.kit import ci
from upright.kit.payload import Json
from upright_ci import told
from upright_ci.gitlab.event import CI, Event, clone_urls, stamp, when

PIPELINE: Final[Mapping[str, str]] = {
    "created": ci.QUEUED,
    "waiting_for_resource": ci.QUEUED,
    "preparing": ci.QUEUED,
    "pending": ci.QUEUED,
    "scheduled": ci.QUEUED,
    "running": ci.STARTED,
    "canceling": ci.STARTED,
    "success": ci.SUCCEEDED,
    "failed": ci.FAILED,
    "canceled": ci.CANCELLED,
    "skipped": ci.SKIPPED,
    "manual": ci.ACTION_REQUIRED,  # nothing goes on until somebody presses a button
}
JOB: Final[Mapping[str, str]] = {**PIPELINE, "manual": ci.QUEUED}  # most are never meant to run
UNDER_WAY: Final = frozenset({ci.QUEUED, ci.STARTED})
_MERGE_REF: Final = re.compile(
    r"refs/merge-requests/(?P<iid>\d{1,9})/(?:head|merge|train)", re.ASCII
)

Logs = Mapping[int, str]
"""The last lines of the logs of failed jobs, by the job's id."""


def pipeline(event: Event, logs: Logs) -> Trigger:
    """Translate ``pipeline``."""
    about = event.payload.part("object_attributes")
    number, branch, head, fork = _request(event, about.text("ref"), tag=about.flag("tag"))
    status, which, sha = about.text("status"), about.number("id"), about.text("sha")
    kind = PIPELINE.get(status, ci.COMPLETED)
    ended = when(about, "finished_at")
    run = ci.Run(
        check="pipeline",
        repository=event.place.repository,
        status=status if kind in UNDER_WAY else "completed",
        conclusion="" if kind in UNDER_WAY else status,
        branch=branch,
        sha=sha,
        number=number,
        url=about.maybe_text("url") or f"{_page(event.payload)}/-/pipelines/{which}",
        failures=_failures(event.payload, logs) if kind == ci.FAILED else (),
    )
    commit = event.payload.maybe_part("commit")
    telling = told.Telling(
        place=event.place,
        actor=CI,
        at=ended if kind not in UNDER_WAY and ended else when(about, "created_at"),
        dedupe=(f"pipeline:{event.place.base}:{which}:{status}:{stamp(ended)}",),
        text=commit.maybe_text("message") if commit else "",
        urls=clone_urls(event.payload),
        head=head,
        fork=fork,
        reply_to=event.note_on("merge_requests", number),
        facts={
            "run": str(which),
            "name": about.maybe_text("name"),
            "event": about.maybe_text("source"),
            "tag": "yes" if about.flag("tag") else "",
            "by": event.user().id,
        },
    )
    return told.trigger(kind, run, telling)


def job(event: Event, logs: Logs) -> Trigger:
    """Translate ``build``: a job. One that may fail, and does, is neutral to its pipeline."""
    about = event.payload
    number, branch, head, fork = _request(event, about.text("ref"), tag=about.flag("tag"))
    status, which, name = (
        about.text("build_status"),
        about.number("build_id"),
        about.text("build_name"),
    )
    kind = JOB.get(status, ci.COMPLETED)
    if kind == ci.FAILED and about.flag("build_allow_failure"):
        kind = ci.NEUTRAL
    why = about.maybe_text("build_failure_reason")
    retries = about.maybe_number("retries_count")
    run = ci.Run(
        check=name,
        repository=event.place.repository,
        status=status if kind in UNDER_WAY else "completed",
        conclusion="" if kind in UNDER_WAY else status,
        branch=branch,
        sha=about.text("sha"),
        number=number,
        attempt=None if retries is None else retries + 1,
        url=f"{_page(about)}/-/jobs/{which}",
        failures=(_failure(name, which, why, logs),) if kind == ci.FAILED else (),
    )
    ended, began = when(about, "build_finished_at"), when(about, "build_started_at")
    telling = told.Telling(
        place=event.place,
        actor=CI,
        at=ended or began or when(about, "build_created_at"),
        dedupe=(f"job:{event.place.base}:{which}:{status}:{stamp(ended)}",),
        urls=clone_urls(about),
        head=head,
        fork=fork,
        reply_to=event.note_on("merge_requests", number),
        facts={
            "run": str(about.maybe_number("pipeline_id") or ""),
            "job": str(which),
            "stage": about.maybe_text("build_stage"),
            "allow_failure": "yes" if about.flag("build_allow_failure") else "",
            "by": event.user().id,
        },
    )
    return told.trigger(kind, run, telling)


def failed_jobs(payload: Json) -> tuple[int, ...]:
    """Return the ids of the jobs whose logs say why something failed."""
    if payload.maybe_text("object_kind") == "build":
        failed = payload.maybe_text("build_status") == "failed"
        return (payload.number("build_id"),) if failed else ()
    if payload.part("object_attributes").maybe_text("status") != "failed":
        return ()
    return tuple(one.number("id") for one in _failed(payload))


def _failed(payload: Json) -> list[Json]:
    return [
        one
        for one in payload.parts("builds")
        if one.maybe_text("status") == "failed" and not one.flag("allow_failure")
    ]


def _failures(payload: Json, logs: Logs) -> tuple[ci.Failure, ...]:
    return tuple(
        _failure(one.text("name"), one.number("id"), one.maybe_text("failure_reason"), logs)
        for one in _failed(payload)
    )


def _failure(name: str, which: int, why: str, logs: Logs) -> ci.Failure:
    """Return what failed; GitLab's own reason where there is no log."""
    log = logs.get(which, "")
    lines = ci.first_errors(log) if log else ()
    return ci.Failure(name=name, lines=lines or ((why.replace("_", " "),) if why else ()))


def _request(event: Event, ref: str, *, tag: bool) -> tuple[int | None, str, str, bool]:
    """Return (merge request, branch, head repository, fork) of a run.

    Without word of the merge request its head may have been pushed by anybody: a fork.
    """
    hit, request = _MERGE_REF.fullmatch(ref), event.payload.maybe_part("merge_request")
    if request is not None:
        source, target = (request.maybe_number(f"{end}_project_id") for end in ("source", "target"))
        fork = source is None or source != target
        branch = request.maybe_text("source_branch") or ("" if hit else ref)
        return request.number("iid"), branch, "", fork
    if hit:
        return int(hit["iid"]), "", "", True
    return None, f"refs/tags/{ref}" if tag else ref, "", False


def _page(payload: Json) -> str:
    project = payload.maybe_part("project") or payload.part("repository")
    return (project.maybe_text("web_url") or project.maybe_text("homepage")).rstrip("/")
