"""Shapes: how GitLab writes its things, in webhooks and in the API. They differ.

Source: docs.gitlab.com, "Webhook events" and the pages of the REST API.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from upright_ci.gitlab.sandbox.world import ENDED, Job, Note, Pipeline, Project, Request

Shape = dict[str, Any]


def hook_time(at: datetime | None) -> str | None:
    """Return a time as webhooks have it."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else None


def api_time(at: datetime | None) -> str | None:
    """Return a time as the API has it."""
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z" if at else None


def user(name: str) -> Shape:
    """Return an account."""
    return {"id": sum(name.encode()), "username": name, "name": name.title(), "state": "active"}


def project(base: str, one: Project) -> Shape:
    """Return a project as webhooks have it."""
    url = f"{base}/{one.path}"
    return {
        "id": one.id,
        "name": one.path.rpartition("/")[2],
        "web_url": url,
        "git_ssh_url": f"git@gitlab.example.org:{one.path}.git",
        "git_http_url": f"{url}.git",
        "namespace": one.path.rpartition("/")[0],
        "visibility_level": 0,
        "path_with_namespace": one.path,
        "default_branch": one.default_branch,
        "homepage": url,
    }


def api_project(base: str, one: Project) -> Shape:
    """Return a project as the API has it."""
    url = f"{base}/{one.path}"
    return {
        "id": one.id,
        "path_with_namespace": one.path,
        "default_branch": one.default_branch,
        "web_url": url,
        "http_url_to_repo": f"{url}.git",
        "ssh_url_to_repo": f"git@gitlab.example.org:{one.path}.git",
    }


def _request(base: str, one: Request) -> Shape:
    return {
        "id": one.id,
        "iid": one.iid,
        "title": one.title,
        "description": one.description,
        "state": one.state,
        "source_branch": one.branch,
        "target_branch": one.project.default_branch,
        "source_project_id": one.source_project or one.project.id,
        "target_project_id": one.project.id,
        "draft": False,
        "url": f"{base}/{one.project.path}/-/merge_requests/{one.iid}",
    }


def request(base: str, one: Request, action: str, by: str) -> Shape:
    """Return the webhook of a merge request."""
    about = {
        **_request(base, one),
        "created_at": hook_time(one.created_at),
        "updated_at": hook_time(one.updated_at),
        "source": project(base, one.project),
        "target": project(base, one.project),
        "last_commit": {"id": one.sha, "message": one.title},
        "action": action,
    }
    return {
        "object_kind": "merge_request",
        "event_type": "merge_request",
        "user": user(by),
        "project": project(base, one.project),
        "object_attributes": about,
        "changes": {},
    }


def api_request(base: str, one: Request) -> Shape:
    """Return a merge request as the API has it."""
    shape = _request(base, one)
    return {
        **shape,
        "web_url": shape.pop("url"),
        "sha": one.sha,
        "author": user(one.author),
        "merge_user": user(one.author) if one.merged_at else None,
        "created_at": api_time(one.created_at),
        "updated_at": api_time(one.updated_at),
        "merged_at": api_time(one.merged_at),
    }


def note(base: str, one: Note, action: str) -> Shape:
    """Return the webhook of a note."""
    on = one.request
    return {
        "object_kind": "note",
        "event_type": "note",
        "user": user(one.author),
        "project_id": on.project.id,
        "project": project(base, on.project),
        "object_attributes": {
            "id": one.id,
            "note": one.body,
            "noteable_type": "MergeRequest",
            "created_at": hook_time(one.created_at),
            "updated_at": hook_time(one.updated_at),
            "system": False,
            "action": action,
            "url": f"{base}/{on.project.path}/-/merge_requests/{on.iid}#note_{one.id}",
        },
        "merge_request": {
            **_request(base, on),
            "source": project(base, on.project),
            "last_commit": {"id": on.sha},
        },
    }


def api_note(one: Note) -> Shape:
    """Return a note as the API has it."""
    return {
        "id": one.id,
        "body": one.body,
        "author": user(one.author),
        "created_at": api_time(one.created_at),
        "updated_at": api_time(one.updated_at),
        "system": False,
        "noteable_type": "MergeRequest",
        "noteable_iid": one.request.iid,
    }


def _job(one: Job) -> Shape:
    failed = one.status == "failed"
    return {
        "id": one.id,
        "name": one.name,
        "stage": "test",
        "status": one.status,
        "allow_failure": one.allow_failure,
        "failure_reason": "script_failure" if failed else None,
    }


def pipeline(base: str, one: Pipeline, on: Request | None) -> Shape:
    """Return the webhook of a pipeline."""
    about = {
        "id": one.id,
        "ref": one.branch,
        "tag": False,
        "sha": one.sha,
        "source": "merge_request_event" if on else "push",
        "status": one.status,
        "created_at": hook_time(one.created_at),
        "finished_at": hook_time(one.finished_at),
        "url": f"{base}/{one.project.path}/-/pipelines/{one.id}",
    }
    return {
        "object_kind": "pipeline",
        "object_attributes": about,
        "merge_request": _request(base, on) if on else None,
        "user": user("ann"),
        "project": project(base, one.project),
        "commit": {"id": one.sha, "message": "Change the clock"},
        "builds": [_job(job) for job in one.jobs],
    }


def api_pipeline(base: str, one: Pipeline, *, whole: bool) -> Shape:
    """Return a pipeline as the API has it; a list gives less of each."""
    short = {
        "id": one.id,
        "project_id": one.project.id,
        "sha": one.sha,
        "ref": f"refs/merge-requests/{one.iid}/head" if one.iid else one.branch,
        "status": one.status,
        "source": "merge_request_event" if one.iid else "push",
        "created_at": api_time(one.created_at),
        "updated_at": api_time(one.updated_at),
        "web_url": f"{base}/{one.project.path}/-/pipelines/{one.id}",
    }
    more = {
        "tag": False,
        "user": user("ann"),
        "finished_at": api_time(one.finished_at if one.status in ENDED else None),
    }
    return {**short, **more} if whole else short


def api_job(one: Job) -> Shape:
    """Return a job as the API has it."""
    return _job(one)
