"""Review calls: the REST API of reviews and of comments on lines, refused where GitHub refuses.

Source: docs.github.com, "Pull request reviews" and "Pull request review comments", API version
2022-11-28.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from upright_github.sandbox.rest import SECONDARY, Handler, Rest, refusal, repo_of
from upright_github.sandbox.reviews import STATES, Reviews
from upright_github.sandbox.shapes import Shape
from upright_github.sandbox.world import Issue

_PULL: Final = "/repos/{owner}/{name}/pulls/{number:\\d+}"
_ALL: Final = "/repos/{owner}/{name}/pulls/comments"


@dataclass(frozen=True, slots=True)
class ReviewRest:
    """The calls about reviews, for one sandbox."""

    rest: Rest
    reviews: Reviews

    def routes(self) -> tuple[tuple[str, str, Handler], ...]:
        """Return method, path and handler of each."""
        return (
            ("GET", _ALL, self._all),
            ("GET", f"{_PULL}/comments", self._comments),
            ("POST", f"{_PULL}/comments/{{id:\\d+}}/replies", self._reply),
            ("GET", f"{_PULL}/reviews", self._list),
            ("POST", f"{_PULL}/reviews", self._submit),
        )

    async def _all(self, request: web.Request) -> web.StreamResponse:
        """List the comments of a repository that changed since, the longest unchanged first."""
        repo, since = repo_of(request).lower(), request.query.get("since", "")
        self.rest.story.world.repository(repo)
        there = [one for one in self.reviews.comments.values() if one.repo.lower() == repo]
        shapes = [self.reviews.shape(one) for one in there]
        changed = [one for one in shapes if one["updated_at"] >= since]
        return self.rest.page(request, sorted(changed, key=lambda one: str(one["updated_at"])))

    async def _comments(self, request: web.Request) -> web.StreamResponse:
        issue = self._pull(request)
        return self.rest.page(request, [self.reviews.shape(one) for one in self.reviews.of(issue)])

    async def _reply(self, request: web.Request) -> web.StreamResponse:
        issue, body = self._pull(request), await _object(request)
        root = self.reviews.comment(int(request.match_info["id"]))
        text = body.get("body")
        if not isinstance(text, str) or not text.strip():
            return _invalid("PullRequestReviewComment", "body can't be blank")
        if root.root is not None or root.number != issue.number:
            return _invalid("PullRequestReviewComment", "in_reply_to is no top-level comment")
        if root.outdated:
            said = "pull_request_review_thread.line must be part of the diff"
            return _invalid("PullRequestReviewComment", said)
        if not self.rest.limits.create(self.rest.story.world.now()):
            return refusal(403, SECONDARY)
        login = self.rest.story.world.login
        shape, _ = self.reviews.add(
            issue, text, login, path=root.path, line=root.line, root=root.id
        )
        return web.json_response(shape, status=201)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        issue = self._pull(request)
        found = [
            self.reviews.review_shape(one)
            for one in self.reviews.reviews.values()
            if (one.repo.lower(), one.number) == (issue.repo.lower(), issue.number)
        ]
        return self.rest.page(request, found)

    async def _submit(self, request: web.Request) -> web.StreamResponse:
        issue, body = self._pull(request), await _object(request)
        event, text = str(body.get("event")), body.get("body") or ""
        login = self.rest.story.world.login
        if event not in STATES:
            return _invalid("PullRequestReview", "event is not included in the list")
        if event != "APPROVE" and not str(text).strip():
            return _invalid("PullRequestReview", "body can't be blank")
        if event != "COMMENT" and issue.author.lower() == login.lower():
            return refusal(422, f"Can not {event.lower()} your own pull request")
        comments = body.get("comments") or []
        for one in comments:
            if not self.reviews.is_in_diff(issue, one.get("path", ""), one.get("line", 0)):
                return _invalid("PullRequestReview", "line must be part of the diff")
        if not self.rest.limits.create(self.rest.story.world.now()):
            return refusal(403, SECONDARY)
        shape, _ = self.reviews.submit(issue, event, str(text), login)
        for one in comments:
            issue = self.rest.story.world.issue(issue.repo, issue.number)
            self.reviews.add(issue, one["body"], login, path=one["path"], line=one["line"])
        return web.json_response(shape)

    def _pull(self, request: web.Request) -> Issue:
        issue = self.rest.story.world.issue(repo_of(request), int(request.match_info["number"]))
        _ = issue.head  # NotThereError: it is only an issue
        return issue


async def _object(request: web.Request) -> dict[str, Any]:
    try:
        value = json.loads(await request.read())
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _invalid(resource: str, said: str) -> web.Response:
    told: Shape = {"resource": resource, "code": "custom", "field": "base", "message": said}
    return refusal(422, "Validation Failed", [told])
