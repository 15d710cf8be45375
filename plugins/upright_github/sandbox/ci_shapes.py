"""Shapes of check runs, workflow runs and pushes, field by field as GitHub sends them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from upright_github.sandbox.shapes import Shape, Shapes, node_id, stamp
from upright_github.sandbox.world import NO_COMMIT, Commit, Push, Repository, Run

_WORKFLOW: Final = ".github/workflows/ci.yml"
_EPOCH: Final = stamp(datetime(2024, 1, 1, tzinfo=UTC))


def app(shapes: Shapes, slug: str) -> Shape:
    """Return an App: who reports a check."""
    account = shapes.world.account(f"{slug}[bot]")
    return {
        "id": account.id,
        "slug": slug,
        "node_id": node_id("App", account.id),
        "owner": shapes.user("sandbox-apps"),
        "name": slug,
        "description": "",
        "external_url": shapes.base,
        "html_url": f"{shapes.base}/apps/{slug}",
        "created_at": _EPOCH,
        "updated_at": _EPOCH,
        "permissions": {"checks": "write", "metadata": "read", "pull_requests": "read"},
        "events": ["check_run", "check_suite"],
    }


def _pulls(shapes: Shapes, run: Run) -> list[Shape]:
    issues = (shapes.world.issue(run.repo, number) for number in run.named)
    return [shapes.short_pull(issue) for issue in issues]


def check_run(shapes: Shapes, run: Run) -> Shape:
    """Return a check run with its suite."""
    reporter, pulls = app(shapes, run.app), _pulls(shapes, run)
    url = shapes.api(run.repo, f"/check-runs/{run.id}")
    page = f"{shapes.base}/{run.repo}/runs/{run.id}"
    suite = run.id + 1_000_000
    state = {"status": run.status, "conclusion": run.conclusion or None}
    return {
        "id": run.id,
        "node_id": node_id("CheckRun", run.id),
        "head_sha": run.sha,
        "external_id": "",
        "url": url,
        "html_url": page,
        "details_url": page,
        **state,
        "started_at": stamp(run.started_at),
        "completed_at": stamp(run.completed_at),
        "output": {
            "title": run.title or None,
            "summary": run.summary or None,
            "text": run.text or None,
            "annotations_count": 0,
            "annotations_url": f"{url}/annotations",
        },
        "name": run.name,
        "check_suite": {
            "id": suite,
            "node_id": node_id("CheckSuite", suite),
            "head_branch": run.branch or None,
            "head_sha": run.sha,
            **state,
            "url": shapes.api(run.repo, f"/check-suites/{suite}"),
            "before": NO_COMMIT,
            "after": run.sha,
            "pull_requests": pulls,
            "app": reporter,
            "created_at": stamp(run.started_at),
            "updated_at": stamp(run.completed_at or run.started_at),
        },
        "app": reporter,
        "pull_requests": pulls,
    }


def workflow(shapes: Shapes, run: Run) -> Shape:
    """Return the workflow of a workflow run."""
    owner = shapes.world.repository(run.repo)
    return {
        "id": owner.id,
        "node_id": node_id("Workflow", owner.id),
        "name": run.name,
        "path": _WORKFLOW,
        "state": "active",
        "created_at": stamp(owner.created_at),
        "updated_at": stamp(owner.created_at),
        "url": shapes.api(run.repo, f"/actions/workflows/{owner.id}"),
        "html_url": f"{shapes.base}/{run.repo}/blob/{owner.default_branch}/{_WORKFLOW}",
        "badge_url": f"{shapes.base}/{run.repo}/workflows/{run.name}/badge.svg",
    }


def workflow_run(shapes: Shapes, run: Run) -> Shape:
    """Return a workflow run."""
    owner = shapes.world.repository(run.repo)
    url, suite = shapes.api(run.repo, f"/actions/runs/{run.id}"), run.id + 1_000_000
    parts = {
        f"{key}_url": f"{url}/{rest}"
        for key, rest in (
            ("artifacts", "artifacts"),
            ("cancel", "cancel"),
            ("jobs", "jobs"),
            ("logs", "logs"),
            ("rerun", "rerun"),
        )
    }
    at = stamp(run.completed_at or run.started_at)
    return {
        "id": run.id,
        "name": run.name,
        "node_id": node_id("WorkflowRun", run.id),
        "head_branch": run.branch or None,
        "head_sha": run.sha,
        "path": _WORKFLOW,
        "display_title": run.title or run.name,
        "run_number": run.id,
        "event": "push",
        "status": run.status,
        "conclusion": run.conclusion or None,
        "workflow_id": owner.id,
        "workflow_url": shapes.api(run.repo, f"/actions/workflows/{owner.id}"),
        "check_suite_id": suite,
        "check_suite_node_id": node_id("CheckSuite", suite),
        "check_suite_url": shapes.api(run.repo, f"/check-suites/{suite}"),
        "url": url,
        "html_url": f"{shapes.base}/{run.repo}/actions/runs/{run.id}",
        **parts,
        "pull_requests": _pulls(shapes, run),
        "created_at": stamp(run.started_at),
        "updated_at": at,
        "run_attempt": run.attempt,
        "run_started_at": stamp(run.started_at),
        "previous_attempt_url": f"{url}/attempts/{run.attempt - 1}" if run.attempt > 1 else None,
        "actor": shapes.user(run.actor),
        "triggering_actor": shapes.user(run.actor),
        "head_commit": {
            "id": run.sha,
            "tree_id": run.sha,
            "message": run.summary or run.title or run.name,
            "timestamp": stamp(run.started_at),
            "author": _person(run.actor),
            "committer": _person(run.actor),
        },
        "repository": shapes.minimal(owner),
        "head_repository": shapes.minimal(owner),
    }


def _person(login: str) -> Shape:
    return {"name": login, "email": f"{login}@users.noreply.example.org"}


def push(shapes: Shapes, repository: Repository, told: Push) -> Shape:
    """Return a push; its repository tells times in seconds, as GitHub's does."""
    page = f"{shapes.base}/{repository.full_name}"
    whole = shapes.repository(repository)
    commits = [_commit(page, one, told.author, repository.pushed_at) for one in told.commits]
    owner = repository.full_name.partition("/")[0]
    return {
        "ref": told.ref,
        "before": told.before,
        "after": told.after,
        "created": told.before == NO_COMMIT,
        "deleted": told.after == NO_COMMIT,
        "forced": False,
        "base_ref": None,
        "compare": f"{page}/compare/{told.before[:12]}...{told.after[:12]}",
        "commits": commits,
        "head_commit": commits[-1] if commits else None,
        "repository": {
            **whole,
            "url": page,
            "owner": {**_person(owner), **whole["owner"]},
            "created_at": int(repository.created_at.timestamp()),
            "pushed_at": int(repository.pushed_at.timestamp()),
            "stargazers": 0,
            "master_branch": repository.default_branch,
        },
        "pusher": _person(told.author),
    }


def _commit(page: str, commit: Commit, author: str, at: datetime) -> Shape:
    person = {**_person(author), "username": author}
    return {
        "id": commit.id,
        "tree_id": commit.id,
        "distinct": commit.distinct,
        "message": commit.message,
        "timestamp": stamp(at),
        "url": f"{page}/commit/{commit.id}",
        "author": person,
        "committer": person,
        "added": [],
        "removed": [],
        "modified": list(commit.modified),
    }
