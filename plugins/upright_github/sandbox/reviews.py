"""Reviews: reviews of a pull request and comments on its lines, as the sandbox knows them.

Source: docs.github.com, "Pull request reviews" and "Pull request review comments", API version
2022-11-28.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from upright_github.sandbox.shapes import Shape, node_id, stamp
from upright_github.sandbox.story import Story, Told
from upright_github.sandbox.world import Issue, NotThereError

STATES: Final[Mapping[str, str]] = {
    "APPROVE": "APPROVED",
    "REQUEST_CHANGES": "CHANGES_REQUESTED",
    "COMMENT": "COMMENTED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A review that was submitted."""

    id: int
    repo: str
    number: int
    body: str
    state: str
    author: str
    sha: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LineComment:
    """A comment on a line, or a reply to one (``root``). ``outdated``: the line is gone."""

    id: int
    repo: str
    number: int
    path: str
    line: int
    body: str
    author: str
    created_at: datetime
    updated_at: datetime
    root: int | None = None
    review: int | None = None
    outdated: bool = False


@dataclass(slots=True)
class Reviews:
    """All reviews of a sandbox. ``diffs``: the lines that a pull request changes, by file."""

    story: Story
    reviews: dict[int, Review] = field(default_factory=dict)
    comments: dict[int, LineComment] = field(default_factory=dict)
    diffs: dict[tuple[str, int], dict[str, range]] = field(default_factory=dict)

    def is_in_diff(self, issue: Issue, path: str, line: int) -> bool:
        """Tell whether a line can be commented on."""
        return line in self.diffs.get((issue.repo.lower(), issue.number), {}).get(path, range(0))

    def comment(self, comment_id: int) -> LineComment:
        """Return a comment; NotThereError when there is none."""
        try:
            return self.comments[comment_id]
        except KeyError:
            raise NotThereError("review comment", comment_id) from None

    def of(self, issue: Issue) -> list[LineComment]:
        """Return the comments of a pull request, oldest first."""
        there = (one for one in self.comments.values() if one.repo.lower() == issue.repo.lower())
        return [one for one in there if one.number == issue.number]

    def add(
        self, issue: Issue, body: str, author: str, *, path: str, line: int, root: int | None = None
    ) -> Told:
        """Comment on a line."""
        now = self.story.world.now()
        made = LineComment(
            id=self.story.world.new_id(),
            repo=issue.repo,
            number=issue.number,
            path=path,
            line=line,
            body=body,
            author=self.story.world.account(author).login,
            created_at=now,
            updated_at=now,
            root=root,
        )
        self.comments[made.id] = made
        self.story.world.put_issue(replace(issue, updated_at=now))
        return self._told(made, "created", author)

    def edit(self, comment: LineComment, body: str) -> Told:
        """Change a comment."""
        changed = replace(comment, body=body, updated_at=self.story.world.now())
        self.comments[comment.id] = changed
        return self._told(changed, "edited", comment.author)

    def submit(self, issue: Issue, event: str, body: str, author: str) -> Told:
        """Submit a review."""
        now = self.story.world.now()
        made = Review(
            id=self.story.world.new_id(),
            repo=issue.repo,
            number=issue.number,
            body=body,
            state=STATES[event],
            author=self.story.world.account(author).login,
            sha=issue.head.sha,
            at=now,
        )
        self.reviews[made.id] = made
        changed = self.story.world.put_issue(replace(issue, updated_at=now))
        shape = self.review_shape(made)
        payload: Shape = {
            "action": "submitted",
            "review": {**shape, "state": made.state.lower()},
            "pull_request": self.story.shapes.pull(changed),
        }
        return shape, self.story.tell("pull_request_review", issue.repo, author, payload)

    def _told(self, comment: LineComment, action: str, author: str) -> Told:
        shape = self.shape(comment)
        issue = self.story.world.issue(comment.repo, comment.number)
        payload = {
            "action": action,
            "comment": shape,
            "pull_request": self.story.shapes.pull(issue),
        }
        event = "pull_request_review_comment"
        return shape, self.story.tell(event, comment.repo, author, payload)

    # -------------------------------------------------------------- shapes
    def shape(self, comment: LineComment) -> Shape:
        """Return a comment as GitHub sends it; the line of one that is outdated is null."""
        shapes, repo = self.story.shapes, comment.repo
        url = shapes.api(repo, f"/pulls/comments/{comment.id}")
        page = f"{shapes.base}/{repo}/pull/{comment.number}"
        sha = self.story.world.issue(repo, comment.number).head.sha
        return {
            "url": url,
            "pull_request_review_id": comment.review,
            "id": comment.id,
            "node_id": node_id("PullRequestReviewComment", comment.id),
            "diff_hunk": f"@@ -{comment.line},1 +{comment.line},1 @@\n-old\n+new",
            "path": comment.path,
            "position": None if comment.outdated else 1,
            "original_position": 1,
            "commit_id": sha,
            "original_commit_id": sha,
            "user": shapes.user(comment.author),
            "body": comment.body,
            "created_at": stamp(comment.created_at),
            "updated_at": stamp(comment.updated_at),
            "html_url": f"{page}#discussion_r{comment.id}",
            "pull_request_url": shapes.api(repo, f"/pulls/{comment.number}"),
            "author_association": "CONTRIBUTOR",
            "start_line": None,
            "original_start_line": None,
            "start_side": None,
            "line": None if comment.outdated else comment.line,
            "original_line": comment.line,
            "side": "RIGHT",
            "subject_type": "line",
            **({"in_reply_to_id": comment.root} if comment.root else {}),
        }

    def review_shape(self, review: Review) -> Shape:
        """Return a review as the API shows it; a webhook writes its state in lower case."""
        shapes = self.story.shapes
        page = f"{shapes.base}/{review.repo}/pull/{review.number}"
        return {
            "id": review.id,
            "node_id": node_id("PullRequestReview", review.id),
            "user": shapes.user(review.author),
            "body": review.body or None,
            "state": review.state,
            "html_url": f"{page}#pullrequestreview-{review.id}",
            "pull_request_url": shapes.api(review.repo, f"/pulls/{review.number}"),
            "author_association": "CONTRIBUTOR",
            "submitted_at": stamp(review.at),
            "commit_id": review.sha,
        }
