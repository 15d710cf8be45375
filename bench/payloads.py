"""Payloads: GitHub's webhooks in small and in real size, made here; each one is news."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any, Final

SIGNING_KEY: Final = "a key for benches"
KEY_VARIABLE: Final = "BENCH_WEBHOOK_KEY"
API_VARIABLE: Final = "BENCH_GITHUB_API"
THREADS: Final = 200
_HOST: Final = "https://git.example.org"
_LINKS: Final = (
    *("forks", "keys{/key_id}", "collaborators{/collaborator}", "teams", "hooks", "events"),
    *("issues/events{/number}", "assignees{/user}", "branches{/branch}", "tags", "deployments"),
    *("git/blobs{/sha}", "git/tags{/sha}", "git/refs{/sha}", "git/trees{/sha}", "subscription"),
    *("statuses/{sha}", "languages", "stargazers", "contributors", "subscribers", "merges"),
    *("commits{/sha}", "git/commits{/sha}", "comments{/number}", "issues/comments{/number}"),
    *("contents/{+path}", "compare/{base}...{head}", "{archive_format}{/ref}", "downloads"),
    *("issues{/number}", "pulls{/number}", "milestones{/number}", "labels{/name}", "releases{/id}"),
)
_PARAGRAPH: Final = (
    "The job failed on the second matrix entry only. The first red line is an assertion in the "
    "ledger's rounding test: it expects 10.05 and gets 10.04, which smells of binary floats. "
)


def small(serial: int) -> tuple[str, bytes]:
    """Return (event, body) of about 300 bytes: a push to one of many branches."""
    before, after = (hashlib.sha256(b"%d" % n).hexdigest()[:40] for n in (serial, serial + 1))
    payload = {
        "ref": f"refs/heads/fix-{serial % THREADS}",
        "before": before,
        "after": after,
        "repository": {"full_name": "acme/app", "html_url": f"{_HOST}/acme/app"},
        "sender": {"login": "ann", "type": "User"},
    }
    return "push", _dumped(payload)


def real(serial: int) -> tuple[str, bytes]:
    """Return (event, body) of about 10 kB: a comment on one of many pull requests."""
    return comment(serial, serial % THREADS + 1)


def comment(serial: int, number: int, *, by: dict[str, Any] | None = None) -> tuple[str, bytes]:
    """Return a comment on a pull request, with all that GitHub sends along."""
    who = by or _user("ann", 7)
    pull = f"{_HOST}/acme/app/pull/{number}"
    payload = {
        "action": "created",
        "issue": {
            "id": 7_000 + number,
            "number": number,
            "title": f"Round to the even cent, part {number}",
            "user": _user("bea", 8),
            "state": "open",
            "html_url": pull,
            "labels": [{"id": n, "name": f"label-{n}", "color": "ededed"} for n in range(4)],
            "assignees": [_user("cal", 9)],
            "pull_request": {"url": f"{_HOST}/api/v3/repos/acme/app/pulls/{number}"},
            "body": _PARAGRAPH,
        },
        "comment": {
            "id": 50_000_000 + serial,
            "html_url": f"{pull}#issuecomment-{50_000_000 + serial}",
            "user": who,
            "created_at": "2026-06-01T09:00:00Z",
            "updated_at": "2026-06-01T09:00:00Z",
            "author_association": "MEMBER",
            "body": f"Number {serial}. {_PARAGRAPH * 16}",
        },
        "repository": _repository(),
        "sender": who,
    }
    return "issue_comment", _dumped(payload)


def noise(serial: int) -> tuple[str, bytes]:
    """Return what asks for nothing: a check that waits or begins, a push, a bot's comment."""
    match serial % 4:
        case 0:
            return small(serial)
        case 1:
            return check(serial, "queued")
        case 2:
            return check(serial, "in_progress")
        case _:
            return comment(serial, serial % THREADS + 1, by=_user("lint", 12) | {"type": "Bot"})


def check(serial: int, status: str) -> tuple[str, bytes]:
    """Return a check run of a commit that has not ended."""
    sha = hashlib.sha256(b"%d" % serial).hexdigest()[:40]
    payload = {
        "action": "created",
        "check_run": {
            "id": 60_000_000 + serial,
            "name": "tests",
            "head_sha": sha,
            "status": status,
            "conclusion": None,
            "html_url": f"{_HOST}/acme/app/runs/{serial}",
            "started_at": "2026-06-01T09:00:00Z",
            "app": {"id": 77, "slug": "builds"},
            "check_suite": {"id": serial, "head_branch": f"fix-{serial % THREADS}"},
            "pull_requests": [],
            "output": {"title": None, "summary": None},
        },
        "repository": _repository(),
        "sender": _user("builds", 13) | {"type": "Bot"},
    }
    return "check_run", _dumped(payload)


MAKERS: Final[dict[str, Callable[[int], tuple[str, bytes]]]] = {"300 B": small, "10 kB": real}


def request(host: str, guid: str, event: str, body: bytes) -> bytes:
    """Return a whole signed HTTP request."""
    signature = hmac.digest(SIGNING_KEY.encode(), body, hashlib.sha256).hex()
    head = (
        f"POST /hooks/github HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"User-Agent: GitHub-Hookshot/bench\r\nX-GitHub-Event: {event}\r\n"
        f"X-GitHub-Delivery: {guid}\r\nX-Hub-Signature-256: sha256={signature}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def _dumped(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload, separators=(",", ":")).encode("ascii")


def _user(login: str, number: int) -> dict[str, Any]:
    api = f"{_HOST}/api/v3/users/{login}"
    return {
        "login": login,
        "id": number,
        "type": "User",
        "site_admin": False,
        "url": api,
        "html_url": f"{_HOST}/{login}",
        "avatar_url": f"{_HOST}/avatars/u/{number}",
        **{
            f"{name}_url": f"{api}/{name}"
            for name in ("followers", "gists", "starred", "subscriptions", "repos", "events")
        },
    }


def _repository() -> dict[str, Any]:
    api = f"{_HOST}/api/v3/repos/acme/app"
    links = {f"{part.partition('{')[0].strip('/') or 'archive'}_url": part for part in _LINKS}
    return {
        "id": 11,
        "name": "app",
        "full_name": "acme/app",
        "private": True,
        "owner": _user("acme", 10),
        "html_url": f"{_HOST}/acme/app",
        "clone_url": f"{_HOST}/acme/app.git",
        "ssh_url": "git@git.example.org:acme/app.git",
        "default_branch": "main",
        "description": "A ledger that rounds as the bank does",
        **{name.replace("/", "_"): f"{api}/{part}" for name, part in links.items()},
        "topics": ["ledger", "money", "rounding"],
        "visibility": "private",
    }
