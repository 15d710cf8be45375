"""World: what the sandbox knows. Plain state; nothing here speaks HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

FIRST_ID: Final = 1_000
NO_COMMIT: Final = "0" * 40


class NotThereError(Exception):
    """There is no such thing in the sandbox."""

    def __init__(self, *what: object) -> None:
        super().__init__(" ".join(map(str, what)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user, or the bot account of an App (``name[bot]``)."""

    id: int
    login: str

    @property
    def kind(self) -> str:
        """Return what GitHub calls its type."""
        return "Bot" if self.login.endswith("[bot]") else "User"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository; ``clone_url`` may be anything that git can clone, a local path too."""

    id: int
    full_name: str
    clone_url: str
    default_branch: str
    private: bool
    created_at: datetime
    pushed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """What makes an issue a pull request. ``head_repo`` differs from the base's for a fork."""

    id: int
    head: str
    sha: str
    head_repo: str
    base: str
    base_sha: str
    merged_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue or a pull request: they share their numbers."""

    id: int
    repo: str
    number: int
    title: str
    body: str
    author: str
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    locked: bool = False
    pull: Pull | None = None

    @property
    def head(self) -> Pull:
        """Return what makes it a pull request; NotThereError when it is only an issue."""
        if self.pull is None:
            raise NotThereError("pull request", self.number)
        return self.pull


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment on an issue or a pull request."""

    id: int
    repo: str
    number: int
    body: str
    author: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A check run or a workflow run. ``branch`` is empty for a commit of a fork."""

    id: int
    repo: str
    name: str
    sha: str
    branch: str
    status: str
    conclusion: str
    started_at: datetime
    completed_at: datetime | None
    app: str
    actor: str
    title: str = ""
    summary: str = ""
    text: str = ""
    attempt: int = 1
    named: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit of a push. ``distinct``: it was on no branch before."""

    id: str
    message: str
    distinct: bool = True
    modified: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """A ref that moved; NO_COMMIT stands for "was not" and "is no more"."""

    ref: str
    before: str
    after: str
    author: str
    commits: tuple[Commit, ...] = ()


@dataclass(slots=True, kw_only=True)
class World:
    """All state. ``now`` gives the time (whole seconds, as GitHub's), ``login`` is the token's."""

    now: Callable[[], datetime]
    login: str
    accounts: dict[str, Account] = field(default_factory=dict)
    repositories: dict[str, Repository] = field(default_factory=dict)
    issues: dict[tuple[str, int], Issue] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    flows: set[int] = field(default_factory=set)  # the runs that are workflow runs
    last_id: int = FIRST_ID

    def new_id(self) -> int:
        """Return an id that nothing had before."""
        self.last_id += 1
        return self.last_id

    def account(self, login: str) -> Account:
        """Return an account; made when it is first named."""
        key = login.lower()
        if key not in self.accounts:
            self.accounts[key] = Account(id=self.new_id(), login=login)
        return self.accounts[key]

    def repository(self, full_name: str) -> Repository:
        """Return a repository; NotThereError when there is none."""
        try:
            return self.repositories[full_name.lower()]
        except KeyError:
            raise NotThereError(full_name) from None

    def add_repository(
        self, full_name: str, clone_url: str, *, default_branch: str, private: bool
    ) -> Repository:
        """Add a repository, or give one other settings."""
        now, known = self.now(), self.repositories.get(full_name.lower())
        made = Repository(
            id=known.id if known else self.new_id(),
            full_name=full_name,
            clone_url=clone_url,
            default_branch=default_branch,
            private=private,
            created_at=known.created_at if known else now,
            pushed_at=now,
        )
        self.repositories[full_name.lower()] = made
        return made

    def issue(self, full_name: str, number: int) -> Issue:
        """Return an issue or a pull request."""
        try:
            return self.issues[full_name.lower(), number]
        except KeyError:
            raise NotThereError(full_name, "number", number) from None

    def put_issue(self, issue: Issue) -> Issue:
        """Store an issue or a pull request, new or changed."""
        self.issues[issue.repo.lower(), issue.number] = issue
        return issue

    def next_number(self, full_name: str) -> int:
        """Return the number that the next issue or pull request gets."""
        return 1 + max((n for name, n in self.issues if name == full_name.lower()), default=0)

    def pulls_of(self, full_name: str, branch: str) -> tuple[Issue, ...]:
        """Return the open pull requests whose head is a branch of this repository."""
        return tuple(
            issue
            for issue in self.issues.values()
            if issue.pull
            and issue.closed_at is None
            and issue.pull.head == branch
            and issue.pull.head_repo.lower() == issue.repo.lower() == full_name.lower()
        )

    def comments_of(self, full_name: str, number: int) -> tuple[Comment, ...]:
        """Return the comments of one thread, oldest first."""
        repo = full_name.lower()
        there = (one for one in self.comments.values() if one.repo.lower() == repo)
        return tuple(one for one in there if one.number == number)

    def comment(self, comment_id: int) -> Comment:
        """Return a comment."""
        try:
            return self.comments[comment_id]
        except KeyError:
            raise NotThereError("comment", comment_id) from None

    def add_comment(self, issue: Issue, body: str, author: str) -> Comment:
        """Add a comment."""
        now = self.now()
        made = Comment(
            id=self.new_id(),
            repo=issue.repo,
            number=issue.number,
            body=body,
            author=self.account(author).login,
            created_at=now,
            updated_at=now,
        )
        self.comments[made.id] = made
        self.put_issue(replace(issue, updated_at=now))
        return made
