"""World: what the sandbox remembers. Frozen values; a change puts another one in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

ENDED: Final = frozenset({"success", "failed", "canceled", "skipped"})


class NotThereError(Exception):
    """GitLab says 404: there is no such thing, or not for this token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project by its full path."""

    id: int
    path: str
    default_branch: str = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A merge request; ``source_project`` is another number when it comes from a fork."""

    id: int
    iid: int
    project: Project
    title: str
    branch: str
    sha: str
    author: str
    created_at: datetime
    updated_at: datetime
    description: str = ""
    state: str = "opened"
    source_project: int = 0
    merged_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note on a merge request."""

    id: int
    request: Request
    body: str
    author: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job of a pipeline, and its log."""

    id: int
    name: str
    status: str
    trace: str = ""
    allow_failure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pipeline on a branch; with ``iid`` it is a merge request's."""

    id: int
    project: Project
    branch: str
    sha: str
    status: str
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None
    iid: int | None = None
    jobs: tuple[Job, ...] = ()


@dataclass(slots=True, kw_only=True)
class World:
    """Everything there is; ``login`` is the account that the token belongs to."""

    now: Callable[[], datetime]
    login: str
    projects: dict[str, Project] = field(default_factory=dict)
    requests: dict[tuple[str, int], Request] = field(default_factory=dict)
    notes: dict[int, Note] = field(default_factory=dict)
    pipelines: dict[int, Pipeline] = field(default_factory=dict)
    last_id: int = 1000

    def new_id(self) -> int:
        """Return the next number."""
        self.last_id += 1
        return self.last_id

    def project(self, key: str) -> Project:
        """Return a project by its path or its number."""
        for one in self.projects.values():
            if key in {one.path, str(one.id)}:
                return one
        raise NotThereError

    def request(self, project: Project, iid: int) -> Request:
        """Return a merge request."""
        try:
            return self.requests[project.path, iid]
        except KeyError:
            raise NotThereError from None

    def notes_on(self, request: Request) -> list[Note]:
        """Return a merge request's notes, oldest first."""
        which = (request.project.path, request.iid)
        return [
            one
            for one in self.notes.values()
            if (one.request.project.path, one.request.iid) == which
        ]

    def pipeline(self, project: Project, which: int) -> Pipeline:
        """Return a pipeline of a project."""
        found = self.pipelines.get(which)
        if found is None or found.project != project:
            raise NotThereError
        return found

    def job(self, project: Project, which: int) -> Job:
        """Return a job of a project."""
        for pipeline in self.pipelines.values():
            for job in pipeline.jobs:
                if pipeline.project == project and job.id == which:
                    return job
        raise NotThereError
