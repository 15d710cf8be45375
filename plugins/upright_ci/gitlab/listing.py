"""Listing: what no webhook brought, read by the API as the webhooks would have told it.

GitLab tries a webhook again only for a while, and switches a hook off that fails too often. Each
thing becomes the same trigger, with the same keys, that its webhook makes: what did arrive is
refused as a duplicate. Of a pipeline only its last state can be listed.

Source: docs.gitlab.com, "Pipelines API", "Merge requests API" and "Notes API".
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from upright.api import ConnectorContext, Trigger, TriggerRejectedError
from upright.kit.payload import Json
from upright_ci.gitlab.client import GitLabClient, project_path
from upright_ci.gitlab.event import Event, place_of, when
from upright_ci.gitlab.logs import tails
from upright_ci.gitlab.runs import failed_jobs
from upright_ci.gitlab.translate import translate

PER_PAGE: Final = 100
MAX_PAGES: Final = 100
OVERLAP: Final = timedelta(minutes=2)  # our clock and GitLab's differ; what comes twice is refused
_FIRST: Final = datetime.min.replace(tzinfo=UTC)

Shape = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Reads what happened in projects."""

    client: GitLabClient
    context: ConnectorContext
    login: str
    default_branches: frozenset[str]

    async def missed(self, projects: tuple[str, ...], since: datetime) -> list[Trigger]:
        """Return what happened in some projects, oldest first.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: GitLab can't be reached, or a limit holds.
        """
        began = since - OVERLAP
        found = list[Trigger]()
        for name in projects:
            project = await self._object(project_path(name))
            async for payload in self._payloads(name, project, began):
                found += await self._told(payload, name)
        return sorted(found, key=lambda one: one.occurred_at or _FIRST)

    async def _payloads(self, name: str, project: Shape, began: datetime) -> AsyncIterator[Shape]:
        """Yield the payloads of what changed, as webhooks have them."""
        path, common = project_path(name), {"project": _project(project)}
        async for pipeline in self._each(f"{path}/pipelines", began, "updated_after"):
            yield await self._pipeline(path, pipeline["id"], common)
        async for request in self._each(f"{path}/merge_requests", began, "updated_after"):
            shape = _request(request, common)
            for action, at in (("open", "created_at"), ("merge", "merged_at")):
                if _since(request, at, began):
                    user = request.get("merge_user" if action == "merge" else "author")
                    yield _asked(shape, action, user or {}, str(request[at]))
            notes = f"{path}/merge_requests/{request['iid']}/notes"
            async for note in self._each(notes, began, ""):
                if _since(note, "updated_at", began):
                    yield _noted(shape, note, began)

    async def _pipeline(self, path: str, which: int, common: Shape) -> Shape:
        about = await self._object(f"{path}/pipelines/{which}")
        jobs = list[Shape]()
        if about.get("status") == "failed":
            async for job in self._each(f"{path}/pipelines/{which}/jobs", None, ""):
                jobs.append(job)
        attributes = {**about, "url": about.get("web_url")}
        return {
            **common,
            "object_kind": "pipeline",
            "object_attributes": attributes,
            "user": about.get("user"),
            "builds": jobs,
        }

    async def _told(self, payload: Shape, project: str) -> list[Trigger]:
        """Leave out what can't be read, and say so: one thing must not stop the others."""
        whole = Json(payload)
        kind = whole.text("object_kind")
        try:
            jobs = failed_jobs(whole) if kind == "pipeline" else ()
            logs = await tails(self.client, project, jobs, self.context.log)
            place = place_of(whole, self.default_branches)
            event = Event(source=self.context.source, payload=whole, place=place, login=self.login)
            made = translate(kind, event, logs)
        except TriggerRejectedError as error:
            self.context.log.warning("gitlab.not_listed", extra={"why": error.reason})
            return []
        return [replace(made, raw=json.dumps(payload).encode())] if made else []

    async def _object(self, path: str) -> Shape:
        value = (await self.client.read(path)).value
        return value if isinstance(value, dict) else {}

    async def _each(self, path: str, began: datetime | None, after: str) -> AsyncIterator[Shape]:
        query, page = {"per_page": str(PER_PAGE), "sort": "asc"}, "1"
        if began is not None:
            query |= {"order_by": "updated_at"}
        if began is not None and after:
            query |= {after: began.astimezone(UTC).isoformat()}
        for _ in range(MAX_PAGES):
            answer = await self.client.read(path, **query, page=page)
            for one in answer.value if isinstance(answer.value, list) else ():
                yield one
            if not (page := answer.next_page):
                return


def _project(about: Shape) -> Shape:
    """Return a project as webhooks have it: their names for clone addresses are others."""
    return {
        **about,
        "git_http_url": about.get("http_url_to_repo"),
        "git_ssh_url": about.get("ssh_url_to_repo"),
    }


def _request(request: Shape, common: Shape) -> Shape:
    own = common["project"]
    same = request.get("source_project_id") == request.get("target_project_id")
    source = {"path_with_namespace": own["path_with_namespace"]} if same else None
    attributes = {
        **request,
        "url": request.get("web_url"),
        "source": source,
        "last_commit": {"id": request["sha"]} if request.get("sha") else None,
    }
    return {**common, "object_kind": "merge_request", "object_attributes": attributes}


def _asked(shape: Shape, action: str, user: Shape, at: str) -> Shape:
    attributes = {**shape["object_attributes"], "action": action, "updated_at": at}
    return {**shape, "object_attributes": attributes, "user": user}


def _noted(shape: Shape, note: Shape, began: datetime) -> Shape:
    """Return a note's payload: as made, if that was missed; else as changed."""
    made = _since(note, "created_at", began)
    attributes = {**note, "note": note.get("body"), "action": "create" if made else "update"}
    return {
        "project": shape["project"],
        "object_kind": "note",
        "object_attributes": attributes,
        "merge_request": shape["object_attributes"],
        "user": note.get("author"),
    }


def _since(shape: Shape, key: str, began: datetime) -> bool:
    at = when(Json(shape), key)
    return at is not None and at >= began
