"""CI: check runs and workflow runs, as one shape.

Where a payload names a pull request, that is the thread. Else the branch is: a new check on a new
commit of a branch finds whoever works on that branch. Else, on the default branch, the check
itself is: red and green of one check there are one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from upright.api import Actor, Channel, Content, Context, Trigger
from upright.kit import ci
from upright.kit.excerpt import excerpt
from upright.kit.payload import Json
from upright_github.event import Event

KINDS: Final[Mapping[str, str]] = {
    # status, while it is not "completed"
    "queued": ci.QUEUED,
    "requested": ci.QUEUED,
    "waiting": ci.QUEUED,
    "pending": ci.QUEUED,
    "in_progress": ci.STARTED,
    # conclusion
    "success": ci.SUCCEEDED,
    "failure": ci.FAILED,
    "timed_out": ci.FAILED,
    "startup_failure": ci.FAILED,
    "cancelled": ci.CANCELLED,
    "neutral": ci.NEUTRAL,
    "skipped": ci.SKIPPED,
    "stale": "ci.stale",
    "action_required": ci.ACTION_REQUIRED,
}
# What people do to a check: no news of the run itself.
ASKED: Final[Mapping[str, str]] = {
    "rerequested": "ci.rerun_requested",
    "requested_action": "ci.action_requested",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What check runs and workflow runs have in common. ``numbers`` are pull requests of here."""

    json: Json
    name: str
    actor: Actor
    text: str
    branch: str
    head: str  # the head repository's full name
    fork: bool
    numbers: tuple[int, ...]
    attempt: int | None = None
    failures: tuple[ci.Failure, ...] = ()  # a workflow's jobs are not in its payload

    @property
    def verdict(self) -> str:
        """Return the conclusion; the status while there is none."""
        done = self.json.maybe_text("status") == "completed"
        conclusion = self.json.maybe_text("conclusion")
        return conclusion or "completed" if done else self.json.maybe_text("status")

    @property
    def at(self) -> datetime | None:
        """Return when this became so."""
        done = self.json.maybe_text("status") == "completed"
        ended = self.json.moment("completed_at") or self.json.moment("updated_at")
        started = self.json.moment("started_at") or self.json.moment("run_started_at")
        return ended if done and ended else started or self.json.moment("created_at")


def check_run(event: Event) -> Trigger:
    """Translate ``check_run``."""
    check = event.payload.part("check_run")
    suite = check.maybe_part("check_suite")
    branch = suite.maybe_text("head_branch") if suite else ""
    numbers, fork = _pulls(event, check)
    output = check.maybe_part("output")
    said = [output.maybe_text(key) for key in ("title", "summary", "text")] if output else []
    name, text = check.text("name"), "\n\n".join(part.strip() for part in said if part.strip())
    run = _Run(
        json=check,
        name=name,
        actor=event.app(check.maybe_part("app"), "checks"),
        text=text,
        failures=(ci.Failure(name=name, lines=ci.first_errors(text)),),
        branch=branch,
        head=event.place.repository,
        # GitHub gives no branch for a commit that was pushed to a fork.
        fork=fork or not (branch or numbers),
        numbers=numbers,
    )
    return _trigger(event, run, "check_run")


def workflow_run(event: Event) -> Trigger:
    """Translate ``workflow_run``."""
    flow = event.payload.part("workflow_run")
    workflow = event.payload.maybe_part("workflow")
    head = flow.maybe_part("head_repository")
    full_name = head.maybe_text("full_name") if head else ""
    numbers, fork = _pulls(event, flow)
    titles = (flow.maybe_text("display_title"), _message(flow))
    run = _Run(
        json=flow,
        name=(workflow.maybe_text("name") if workflow else "") or flow.text("name"),
        actor=event.app(None, "github-actions"),
        text="\n\n".join(dict.fromkeys(title for title in titles if title)),
        branch=flow.maybe_text("head_branch"),
        head=full_name,
        fork=fork or not event.place.same(full_name),  # a deleted fork has no name
        numbers=numbers,
        attempt=flow.maybe_number("run_attempt"),
    )
    return _trigger(event, run, "workflow_run")


def _message(flow: Json) -> str:
    commit = flow.maybe_part("head_commit")
    return commit.maybe_text("message") if commit else ""


def _pulls(event: Event, run: Json) -> tuple[tuple[int, ...], bool]:
    """Return the numbers of pull requests into this repository, and if any comes from a fork."""
    here = event.payload.part("repository").maybe_number("id")
    numbers, fork = list[int](), False
    for pull in run.parts("pull_requests"):
        base, head = pull.part("base").maybe_part("repo"), pull.part("head").maybe_part("repo")
        if base is not None and base.maybe_number("id") != here:
            continue  # a pull request of ours into somebody else's repository: not our number
        numbers.append(pull.number("number"))
        fork = fork or head is None or head.maybe_number("id") != here
    return tuple(numbers), fork


def _trigger(event: Event, run: _Run, what: str) -> Trigger:
    sha, link = run.json.text("head_sha"), run.json.maybe_text("html_url")
    number = run.numbers[0] if run.numbers else None
    thread, joins, related = _keys(event, run, sha)
    kind = ASKED.get(event.action) or KINDS.get(run.verdict, ci.COMPLETED)
    shown = ci.Run(
        check=run.name,
        repository=event.place.repository,
        status=run.json.maybe_text("status"),
        conclusion=run.json.maybe_text("conclusion"),
        branch=run.branch,
        sha=sha,
        number=number,
        attempt=run.attempt,
        url=link,
        failures=run.failures if kind == ci.FAILED else (),
    )
    return Trigger(
        kind=kind,
        channel=Channel.CI,
        actor=run.actor,
        content=Content(
            title=shown.title,
            text=excerpt(run.text, where=link),
        ),
        context=Context(
            thread=thread,
            joins=joins,
            related=related,
            reply_to=event.comment_on(number),
            links=tuple(filter(None, (link, run.json.maybe_text("details_url")))),
            code=event.code(sha=sha, branch=run.branch, number=number, fork=run.fork),
            facts=event.facts(
                **shown.facts(),
                app=run.actor.id.removeprefix("app:"),
                event=run.json.maybe_text("event"),
                sender=event.sender().id,
            ),
        ),
        dedupe=(_dedupe(run, what, kind),),
        occurred_at=run.at,
    )


def _keys(event: Event, run: _Run, sha: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return (thread, joins, related).

    A commit joins only where the pull request is known, or nothing else is: two branches that were
    made from one commit have checks on the same commit, and are two threads all the same.
    """
    place, commit = event.place, event.place.sha(sha, fork=run.fork)
    branch = () if run.fork and not run.head else place.branch(run.branch, run.head)
    if run.numbers:
        first, *others = (place.number(number) for number in run.numbers)
        return first, (*others, commit, *branch), ()
    if branch:
        return branch[0], (commit,) if run.fork else (), () if run.fork else (commit,)
    if run.branch and not run.fork:
        return place.check(run.branch, run.name), (), (commit,)
    return commit, (), ()


def _dedupe(run: _Run, what: str, kind: str) -> str:
    """Return the key of this state of the run: "created" and "completed" may tell the same."""
    at = run.at.isoformat() if run.at else ""
    return f"{what}:{run.json.number('id')}:{run.attempt or 1}:{kind}:{run.verdict}:{at}"
