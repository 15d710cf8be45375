"""Feeds: what happened in a repository, read by the API as the webhooks would have told it.

Each row becomes the same trigger, with the same keys, that its webhook makes: what came both ways
is refused as a duplicate. What the API does not keep (deletions, labels, pushes) it can't tell.

Source: docs.github.com, the "List …" endpoints of issues, pull requests and Actions, API version
2022-11-28; "Best practices for using the REST API" on conditional requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeGuard
from urllib.parse import quote, urlencode

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorContext,
    ConnectorNotReadyError,
    Trigger,
    TriggerRejectedError,
)
from upright.kit.payload import Json
from upright_github import ci, code, talk
from upright_github.client import Answer, GitHubClient, LostError, NotSentError
from upright_github.event import Event, Identity
from upright_github.keys import Place
from upright_github.logs import Logs

PER_PAGE: Final = 100
MAX_PAGES: Final = 100
HEADS: Final = 30  # open pull requests whose checks are looked at
ACTIONS: Final = "github-actions"

Shape = dict[str, Any]
_MAKE: Final[Mapping[str, Callable[[Event], Trigger]]] = {
    "issue_comment": talk.issue_comment,
    "pull_request_review_comment": talk.review_comment,
    "pull_request_review": talk.review,
    "issues": talk.issues,
    "pull_request": code.pull_request,
    "workflow_run": ci.workflow_run,
    "check_run": ci.check_run,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing of a feed, and when it was last changed."""

    feed: str
    id: str
    changed_at: datetime
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From when to when something is told; of a ``known`` row not how it came to be."""

    began: datetime
    until: datetime
    known: bool = False

    def has(self, found: object) -> bool:
        """Tell whether a time lies in it."""
        at = moment(found)
        return at is not None and self.began <= at <= self.until

    def made(self, found: object) -> bool:
        """Tell whether something new was made in it."""
        return not self.known and self.has(found)


@dataclass(slots=True)
class Feeds:
    """Reads one GitHub. ``etags`` are by path and query: an unchanged list costs nothing.

    ``asked_s`` is how long GitHub asks a poller to wait (``X-Poll-Interval``); 0: it does not.
    """

    client: GitHubClient
    me: Identity
    context: ConnectorContext
    etags: dict[str, str] = field(default_factory=dict)
    asked_s: float = 0.0
    _kept: dict[str, tuple[str, object]] = field(default_factory=dict)  # ETag and what it was
    _about: dict[str, object] = field(default_factory=dict)  # of this round, by path

    def begin(self) -> None:
        """Begin a round: what was read beside the lists is read anew."""
        self._about.clear()

    async def now(self, repository: str) -> datetime:
        """Return GitHub's own time: ours may be wrong, and rows are measured by theirs."""
        answer = await self.answer(f"/repos/{repository}")
        try:
            theirs = parsedate_to_datetime(answer.headers.get("date", ""))
        except ValueError:
            return self.context.now()
        return theirs if theirs.tzinfo else self.context.now()

    # -------------------------------------------------------------- lists
    async def rows(self, repository: str, since: datetime, *, fresh: bool = False) -> list[Row]:
        """Return what changed since, of all feeds, the longest unchanged first.

        A list that did not change since it was last read has no rows; *fresh* reads it anyway.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: GitHub can't be reached, or a limit holds.
        """
        path, query = f"/repos/{repository}", _sorted_since(since)
        lists: tuple[tuple[str, str, Mapping[str, str], str], ...] = (
            ("comments", f"{path}/issues/comments", query, ""),
            ("review_comments", f"{path}/pulls/comments", query, ""),
            ("issues", f"{path}/issues", {**query, "state": "all"}, ""),
            ("runs", f"{path}/actions/runs", {}, "workflow_runs"),
        )
        found: list[Row] = []
        checks: list[tuple[str, str, Mapping[str, str], str]] = [
            ("checks", f"{path}/commits/{head}/check-runs", {}, "check_runs")
            for head in await self._heads(repository)
        ]
        for feed, where, asked, inside in (*lists, *checks):
            for shape in await self._list(where, asked, inside, fresh=fresh):
                row = _row(feed, shape)
                if row is not None and row.changed_at >= since:
                    found.append(row)
        return sorted(found, key=lambda row: row.changed_at)

    async def _heads(self, repository: str) -> list[str]:
        """Return the commits whose checks are looked at: of open pull requests, and the default.

        Checks can't be listed by time. GitHub Actions' own are told by the runs.
        """
        path = f"/repos/{repository}/pulls"
        query = {"state": "open", "sort": "updated", "direction": "desc", "per_page": str(HEADS)}
        pulls = await self._kept_of(path, **query)
        heads = [one.get("head") for one in pulls if isinstance(one, dict)] if _many(pulls) else []
        shas = [str(head["sha"]) for head in heads if isinstance(head, dict) and "sha" in head]
        about = await self._kept_of(f"/repos/{repository}")
        default = about.get("default_branch") if isinstance(about, dict) else None
        return [*dict.fromkeys(shas), *([quote(default, safe="")] if default else [])]

    async def every(self, path: str) -> list[Shape]:
        """Return all objects of a list."""
        return await self._list(path, {}, "", fresh=True)

    async def _list(
        self, path: str, query: Mapping[str, str], inside: str, *, fresh: bool
    ) -> list[Shape]:
        """Return a list's objects; runs come newest first, so that one page of them is enough."""
        key, shapes = f"{path}?{urlencode(query)}", list[Shape]()
        etag = "" if fresh else self.etags.get(key, "")
        for page in range(1, 2 if inside else MAX_PAGES + 1):
            paged = {**query, "per_page": str(PER_PAGE), "page": str(page)}
            answer = await self.answer(path, etag=etag if page == 1 else "", **paged)
            if answer.status == 304:
                return []
            value = answer.value
            found = value.get(inside) if isinstance(value, dict) else value
            shapes += [one for one in found if isinstance(one, dict)] if _many(found) else []
            if not answer.has_next or inside:
                self._remember(key, answer, whole=page == 1)
                break
        return shapes

    def _remember(self, key: str, answer: Answer, *, whole: bool) -> None:
        """Keep a list's ETag, if one page was all of it: what is new may stand on another."""
        self.etags.pop(key, None)
        if whole and (etag := answer.headers.get("etag")):
            self.etags[key] = etag

    # -------------------------------------------------------------- triggers
    async def told(self, repository: str, row: Row, span: Span) -> list[Trigger]:
        """Return the triggers of what happened to a row in a span; what can't be read is left out.

        One thing that can't be read must not stop the others: it is said, and no more.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: GitHub can't be reached, or a limit holds.
        """
        try:
            payloads = await self._payloads(repository, row, span)
            about = await self._kept_of(f"/repos/{repository}")
            made = [self._trigger(event, {**one, "repository": about}) for event, one in payloads]
        except TriggerRejectedError as error:
            self.context.log.warning("github.not_listed", extra={"why": error.reason})
            return []
        logs = Logs(self.client, self.context)
        return [await logs.explained(one) for one in made]

    async def _payloads(self, repository: str, row: Row, span: Span) -> list[tuple[str, Shape]]:
        path, shape = f"/repos/{repository}", row.shape
        sender = {"sender": shape.get("user")}
        match row.feed:
            case "comments":
                issue = await self._get(f"{path}/issues/{_number(shape, 'issue_url')}")
                made = {"issue": issue, "comment": shape, **sender}
                return [("issue_comment", one) for one in _made_or_edited(made, span)]
            case "review_comments":
                pull = await self._get(f"{path}/pulls/{_number(shape, 'pull_request_url')}")
                made = {"pull_request": pull, "comment": shape, **sender}
                event = "pull_request_review_comment"
                return [(event, one) for one in _made_or_edited(made, span)]
            case "runs":
                told = {"action": shape.get("status"), "workflow_run": shape, "workflow": None}
                return [("workflow_run", {**told, "sender": shape.get("triggering_actor")})]
            case "checks":
                action = "completed" if shape.get("status") == "completed" else "created"
                check = {"action": action, "check_run": shape}
                return [("check_run", {**check, "sender": _owner(shape)})]
            case _:
                return await self._thread(path, shape, span)

    async def _thread(self, path: str, shape: Shape, span: Span) -> list[tuple[str, Shape]]:
        """Return what an issue or a pull request has to tell: opened, closed, reviewed."""
        number = shape.get("number")
        if shape.get("pull_request") is None:
            return [
                ("issues", {"action": action, "issue": {**shape, "updated_at": at}, **by})
                for action, at, by in _steps(shape, span)
            ]
        pull: object = await self._get(f"{path}/pulls/{number}")
        if not isinstance(pull, dict):
            reason = f"There is no pull request {number}"
            raise TriggerRejectedError(reason)
        told: list[tuple[str, Shape]] = []
        for action, at, by in _steps(pull, span):
            own = {"number": number, "pull_request": {**pull, "updated_at": at}, **by}
            told.append(("pull_request", {"action": action, **own}))
        for review in await self.every(f"{path}/pulls/{number}/reviews"):
            if span.has(review.get("submitted_at")):
                own = {"review": review, "pull_request": pull, "sender": review.get("user")}
                told.append(("pull_request_review", {"action": "submitted", **own}))
        return told

    def _trigger(self, event: str, payload: Shape) -> Trigger:
        whole = Json(payload)
        made = _MAKE[event](
            Event(
                source=self.context.source,
                action=whole.maybe_text("action"),
                payload=whole,
                place=Place.of(whole.part("repository")),
                me=self.me,
            )
        )
        return replace(made, raw=json.dumps(payload).encode())

    # -------------------------------------------------------------- calls
    async def _get(self, path: str) -> object:
        """Read one thing, once a round."""
        if path not in self._about:
            self._about[path] = (await self.answer(path)).value
        return self._about[path]

    async def _kept_of(self, path: str, **query: str) -> object:
        """Read one thing, or take what it was when it has not changed."""
        etag, known = self._kept.get(path, ("", None))
        answer = await self.answer(path, etag=etag, **query)
        if answer.status == 304:
            return known
        self._kept[path] = (answer.headers.get("etag", ""), answer.value)
        return answer.value

    async def answer(self, path: str, *, etag: str = "", **query: str) -> Answer:
        """Read; 200, or 304 where an ETag was given.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: GitHub can't be reached, or a limit holds.
        """
        try:
            answer = await self.client.get(path, etag=etag, **query)
        except (NotSentError, LostError) as error:
            raise ConnectorNotReadyError(str(error)) from error
        if answer.status == 401:
            raise ConnectorAuthFailedError(answer.message)
        if answer.status not in {200, 304}:
            pause_s = answer.pause_s(self.context.now())
            said = f"GET {path}: {answer.message}"
            raise ConnectorNotReadyError(said, retry_after_s=pause_s)
        asked = answer.headers.get("x-poll-interval", "")
        self.asked_s = float(asked) if asked.isdigit() else self.asked_s
        return answer


# ------------------------------------------------------------------ shapes
def stamp(at: datetime) -> str:
    """Return a time as GitHub reads it: whole seconds, ``Z``."""
    return at.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def moment(found: object) -> datetime | None:
    """Return a time that GitHub wrote; None when it is none."""
    try:
        at = datetime.fromisoformat(found) if isinstance(found, str) else None
    except ValueError:
        return None
    return at if at is None or at.tzinfo else at.replace(tzinfo=UTC)


def _many(found: object) -> TypeGuard[list[object]]:
    return isinstance(found, list)


def _sorted_since(since: datetime) -> dict[str, str]:
    return {"since": stamp(since), "sort": "updated", "direction": "asc"}


def _row(feed: str, shape: Shape) -> Row | None:
    times = ("completed_at", "started_at") if feed == "checks" else ("updated_at",)
    at = next((at for key in times if (at := moment(shape.get(key)))), None)
    number = shape.get("id")
    if at is None or number is None or (feed == "checks" and _app(shape) == ACTIONS):
        return None
    attempt = f".{shape.get('run_attempt')}" if feed == "runs" else ""
    return Row(feed=feed, id=f"{feed}:{number}{attempt}", changed_at=at, shape=shape)


def _app(shape: Shape) -> object:
    app = shape.get("app")
    return app.get("slug") if isinstance(app, dict) else None


def _owner(shape: Shape) -> object:
    """Return the account behind a check's application."""
    app = shape.get("app")
    return app.get("owner") if isinstance(app, dict) else None


def _number(shape: Shape, key: str) -> str:
    number = str(shape.get(key, "")).rpartition("/")[2]
    if not number.isdigit():
        reason = f"The payload has no number at {key}"
        raise TriggerRejectedError(reason)
    return number


def _made_or_edited(payload: Shape, span: Span) -> list[Shape]:
    """Return a comment's payloads: changed after it was made, it is told as made and as edited."""
    comment = payload["comment"]
    made, changed = moment(comment.get("created_at")), moment(comment.get("updated_at"))
    actions = ["created"] if span.made(comment.get("created_at")) else []
    if changed is not None and made is not None and made < changed:
        actions.append("edited")
    return [{"action": action, **payload} for action in actions]


def _steps(shape: Shape, span: Span) -> list[tuple[str, object, dict[str, object]]]:
    """Return (action, when, who) of an issue's or a pull request's opening and end."""
    opened, closed = shape.get("created_at"), shape.get("closed_at")
    ended_by = shape.get("merged_by") or shape.get("closed_by") or shape.get("user")
    found: list[tuple[str, object, dict[str, object]]] = []
    if span.made(opened):
        found.append(("opened", opened, {"sender": shape.get("user")}))
    if span.has(closed):
        found.append(("closed", closed, {"sender": ended_by}))
    return found
