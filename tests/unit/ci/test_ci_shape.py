"""GitHub, GitLab, Buildbot, any JSON and a report of tests tell one failed run in one shape."""

from __future__ import annotations

from typing import Any, Final

import pytest

from fixtures import github, gitlab
from fixtures.ci_hook import posted
from upright.api import Channel, Trigger
from upright_ci.settings import Provider

SHA: Final = "a" * 40
FACTS: Final = ("check", "repository", "status", "branch", "sha", "url", "failed", "error")
URL: Final = "https://ci.example.org/900"
WHY: Final = "AssertionError: expected 1, got 2"


def of_gitlab() -> dict[str, Any]:
    return {
        "object_kind": "build",
        "ref": "fix",
        "sha": SHA,
        "build_id": 900,
        "build_name": "unit",
        "build_status": "failed",
        "build_finished_at": "2026-06-01 09:04:00 UTC",
        "build_failure_reason": "script_failure",
        "repository": {"homepage": "https://git.example.org/acme/app"},
    }


def of_buildbot() -> dict[str, Any]:
    stamp = {"branch": "fix", "revision": SHA, "project": "acme/app"}
    log = f"hsh -c tests\no{WHY}\n"
    return {
        "buildid": 900,
        "complete": True,
        "complete_at": 1_780_304_640,
        "results": 2,
        "builder": {"name": "unit"},
        "buildset": {"sourcestamps": [stamp]},
        "url": URL,
        "steps": [{"name": "unit", "results": 2, "logs": [{"content": {"content": log}}]}],
    }


REPORT: Final = (
    '<testsuite name="unit"><testcase name="unit">'
    f'<failure message="{WHY}"/></testcase></testsuite>'
).encode()


async def told(provider: str) -> Trigger:
    match provider:
        case "github":
            return await github.one("check_run", github.check_run())
        case "gitlab":
            return await gitlab.one(of_gitlab())
        case "buildbot":
            return await posted(of_buildbot(), provider=Provider.BUILDBOT)
        case _:
            query = {"repository": "acme/app", "branch": "fix", "sha": SHA, "url": URL}
            return await posted(REPORT, query)


@pytest.mark.feature("ci.shape")
@pytest.mark.parametrize("provider", ["github", "gitlab", "buildbot", "junit"])
async def test_a_failed_run_has_one_shape_whoever_ran_it(provider: str) -> None:
    trigger = await told(provider)
    facts, code = dict(trigger.context.facts), trigger.context.code
    assert (trigger.kind, trigger.channel) == ("ci.failed", Channel.CI)
    assert [name for name in FACTS if not facts.get(name)] == []
    assert (facts["repository"], facts["branch"], facts["sha"]) == ("acme/app", "fix", SHA)
    assert (facts["check"], facts["status"]) == ("unit", "completed")
    assert facts["branch_keys"].endswith("/acme/app:acme/app:")
    assert trigger.context.thread == f"{facts['branch_keys']}fix"
    assert code is not None
    assert (code.repository, code.sha, code.branch) == ("acme/app", SHA, "fix")
    assert trigger.actor.id.startswith("app:")
