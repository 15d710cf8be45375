"""Shapes of people, repositories, issues and comments, field by field as GitHub sends them.

Checked against real payloads by ``tests/corpus/test_github_payloads.py``.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from upright_github.sandbox.world import Account, Comment, Issue, Pull, Repository, World

Shape = dict[str, Any]

_USER_URLS: Final = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}
_REPOSITORY_URLS: Final = {
    "url": "",
    "forks_url": "/forks",
    "keys_url": "/keys{/key_id}",
    "collaborators_url": "/collaborators{/collaborator}",
    "teams_url": "/teams",
    "hooks_url": "/hooks",
    "issue_events_url": "/issues/events{/number}",
    "events_url": "/events",
    "assignees_url": "/assignees{/user}",
    "branches_url": "/branches{/branch}",
    "tags_url": "/tags",
    "blobs_url": "/git/blobs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "trees_url": "/git/trees{/sha}",
    "statuses_url": "/statuses/{sha}",
    "languages_url": "/languages",
    "stargazers_url": "/stargazers",
    "contributors_url": "/contributors",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "commits_url": "/commits{/sha}",
    "git_commits_url": "/git/commits{/sha}",
    "comments_url": "/comments{/number}",
    "issue_comment_url": "/issues/comments{/number}",
    "contents_url": "/contents/{+path}",
    "compare_url": "/compare/{base}...{head}",
    "merges_url": "/merges",
    "archive_url": "/{archive_format}{/ref}",
    "downloads_url": "/downloads",
    "issues_url": "/issues{/number}",
    "pulls_url": "/pulls{/number}",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "labels_url": "/labels{/name}",
    "releases_url": "/releases{/id}",
    "deployments_url": "/deployments",
}
_NO_MORE: Final[Shape] = {
    "description": None,
    "homepage": None,
    "size": 0,
    "stargazers_count": 0,
    "watchers_count": 0,
    "language": None,
    "has_issues": True,
    "has_projects": True,
    "has_downloads": True,
    "has_wiki": True,
    "has_pages": False,
    "forks_count": 0,
    "mirror_url": None,
    "archived": False,
    "disabled": False,
    "license": None,
    "forks": 0,
    "watchers": 0,
    "is_template": False,
    "topics": [],
    "web_commit_signoff_required": False,
    "custom_properties": {},
}


def stamp(at: datetime | None) -> str | None:
    """Return a time as GitHub writes it: whole seconds, ``Z``."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if at else None


def node_id(kind: str, number: int) -> str:
    """Return an opaque id as GraphQL has it."""
    return b64encode(f"0{len(kind)}:{kind}{number}".encode()).decode()


@dataclass(frozen=True, slots=True)
class Shapes:
    """Makes shapes; ``base`` is the address of both the API and the pages: ``http://host:port``."""

    base: str
    world: World

    def api(self, repo: str, rest: str = "") -> str:
        """Return an API address below a repository."""
        return f"{self.base}/repos/{repo}{rest}"

    def user(self, login: str) -> Shape:
        """Return an account."""
        account: Account = self.world.account(login)
        name = account.login.removesuffix("[bot]")
        url = f"{self.base}/users/{account.login}"
        return {
            "login": account.login,
            "id": account.id,
            "node_id": node_id("User", account.id),
            "avatar_url": f"{self.base}/avatars/u/{account.id}",
            "gravatar_id": "",
            "url": url,
            "html_url": f"{self.base}/{name}",
            **{key: url + rest for key, rest in _USER_URLS.items()},
            "type": account.kind,
            "site_admin": False,
        }

    def minimal(self, repository: Repository) -> Shape:
        """Return a repository as a workflow run shows it: its names and addresses."""
        owner, _, name = repository.full_name.partition("/")
        return {
            "id": repository.id,
            "node_id": node_id("Repository", repository.id),
            "name": name,
            "full_name": repository.full_name,
            "private": repository.private,
            "owner": self.user(owner),
            "html_url": f"{self.base}/{repository.full_name}",
            "description": None,
            "fork": False,
            **{key: self.api(repository.full_name, rest) for key, rest in _REPOSITORY_URLS.items()},
        }

    def repository(self, repository: Repository) -> Shape:
        """Return a whole repository."""
        host, full_name = urlsplit(self.base).netloc, repository.full_name
        open_issues = sum(
            issue.closed_at is None
            for (name, _), issue in self.world.issues.items()
            if name == full_name.lower()
        )
        return {
            **self.minimal(repository),
            **_NO_MORE,
            "created_at": stamp(repository.created_at),
            "updated_at": stamp(repository.pushed_at),
            "pushed_at": stamp(repository.pushed_at),
            "git_url": f"git://{host}/{full_name}.git",
            "ssh_url": f"git@{host}:{full_name}.git",
            "clone_url": repository.clone_url or f"{self.base}/{full_name}.git",
            "svn_url": f"{self.base}/{full_name}",
            "open_issues_count": open_issues,
            "open_issues": open_issues,
            "visibility": "private" if repository.private else "public",
            "default_branch": repository.default_branch,
        }

    def issue(self, issue: Issue) -> Shape:
        """Return an issue; a pull request has the links to its other half."""
        url = self.api(issue.repo, f"/issues/{issue.number}")
        kind = "pull" if issue.pull else "issues"
        page = f"{self.base}/{issue.repo}/{kind}/{issue.number}"
        shape: Shape = {
            "url": url,
            "repository_url": self.api(issue.repo),
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "html_url": page,
            **self._common("Issue", issue),
            "milestone": None,
            "comments": len(self.world.comments_of(issue.repo, issue.number)),
            "reactions": self._reactions(url),
        }
        if issue.pull:
            pull = self.api(issue.repo, f"/pulls/{issue.number}")
            links = {"url": pull, "html_url": page, "diff_url": f"{page}.diff"}
            merged_at = stamp(issue.pull.merged_at)
            shape["pull_request"] = {**links, "patch_url": f"{page}.patch", "merged_at": merged_at}
        return shape

    def _common(self, kind: str, issue: Issue) -> Shape:
        number = issue.pull.id if issue.pull and kind == "PullRequest" else issue.id
        owner = issue.repo.partition("/")[0].lower() == issue.author.lower()
        return {
            "id": number,
            "node_id": node_id(kind, number),
            "number": issue.number,
            "title": issue.title,
            "user": self.user(issue.author),
            "labels": [],
            "state": "closed" if issue.closed_at else "open",
            "locked": issue.locked,
            "assignee": None,
            "assignees": [],
            "created_at": stamp(issue.created_at),
            "updated_at": stamp(issue.updated_at),
            "closed_at": stamp(issue.closed_at),
            "author_association": "OWNER" if owner else "CONTRIBUTOR",
            "active_lock_reason": None,
            "draft": False,
            "body": issue.body or None,
        }

    def pull(self, issue: Issue) -> Shape:
        """Return a pull request."""
        pull = issue.head
        url, page = self.api(issue.repo, f"/pulls/{issue.number}"), f"{self.base}/{issue.repo}/pull"
        thread = self.api(issue.repo, f"/issues/{issue.number}")
        links = {
            "review_comments": f"{url}/comments",
            "review_comment": self.api(issue.repo, "/pulls/comments{/number}"),
            "commits": f"{url}/commits",
            "comments": f"{thread}/comments",
            "statuses": self.api(issue.repo, f"/statuses/{pull.sha}"),
        }
        html = f"{page}/{issue.number}"
        own = {"self": url, "html": html, "issue": thread, **links}
        return {
            "url": url,
            "html_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "issue_url": thread,
            **self._common("PullRequest", issue),
            **{f"{key}_url": value for key, value in links.items()},
            "_links": {key: {"href": value} for key, value in own.items()},
            **self._head_and_base(issue.repo, pull),
            **_merge_state(pull),
            "comments": len(self.world.comments_of(issue.repo, issue.number)),
        }

    def _head_and_base(self, repo: str, pull: Pull) -> Shape:
        ends = {
            "head": (pull.head_repo, pull.head, pull.sha),
            "base": (repo, pull.base, pull.base_sha),
        }
        return {
            end: {
                "label": f"{full_name.partition('/')[0]}:{branch}",
                "ref": branch,
                "sha": sha,
                "user": self.user(full_name.partition("/")[0]),
                "repo": self.repository(self.world.repository(full_name)),
            }
            for end, (full_name, branch, sha) in ends.items()
        }

    def short_pull(self, issue: Issue) -> Shape:
        """Return a pull request as a check shows it."""
        pull = issue.head
        ends = {
            "head": (pull.head_repo, pull.head, pull.sha),
            "base": (issue.repo, pull.base, pull.base_sha),
        }
        return {
            "url": self.api(issue.repo, f"/pulls/{issue.number}"),
            "id": pull.id,
            "number": issue.number,
            **{
                end: {"ref": branch, "sha": sha, "repo": self._short(full_name)}
                for end, (full_name, branch, sha) in ends.items()
            },
        }

    def _short(self, full_name: str) -> Shape:
        repository = self.world.repository(full_name)
        name = full_name.partition("/")[2]
        return {"id": repository.id, "url": self.api(full_name), "name": name}

    def comment(self, comment: Comment) -> Shape:
        """Return a comment on an issue or a pull request."""
        issue = self.world.issue(comment.repo, comment.number)
        url = self.api(comment.repo, f"/issues/comments/{comment.id}")
        kind = "pull" if issue.pull else "issues"
        page = f"{self.base}/{comment.repo}/{kind}/{comment.number}"
        return {
            "url": url,
            "html_url": f"{page}#issuecomment-{comment.id}",
            "issue_url": self.api(comment.repo, f"/issues/{comment.number}"),
            "id": comment.id,
            "node_id": node_id("IssueComment", comment.id),
            "user": self.user(comment.author),
            "created_at": stamp(comment.created_at),
            "updated_at": stamp(comment.updated_at),
            "author_association": "CONTRIBUTOR",
            "performed_via_github_app": None,
            "body": comment.body,
            "reactions": self._reactions(url),
        }

    def _reactions(self, url: str) -> Shape:
        kinds = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
        return {"url": f"{url}/reactions", "total_count": 0, **dict.fromkeys(kinds, 0)}


def _merge_state(pull: Pull) -> Shape:
    return {
        "requested_reviewers": [],
        "requested_teams": [],
        "milestone": None,
        "merge_commit_sha": None,
        "merged_at": stamp(pull.merged_at),
        "auto_merge": None,
        "merged": pull.merged_at is not None,
        "mergeable": None,
        "rebaseable": None,
        "mergeable_state": "unknown",
        "merged_by": None,
        "review_comments": 0,
        "maintainer_can_modify": False,
        "commits": 1,
        "additions": 1,
        "deletions": 1,
        "changed_files": 1,
    }
