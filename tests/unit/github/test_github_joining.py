"""B6.10: what belongs together shares a key, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.github import (
    BASE,
    SHA,
    check_run,
    issue_comment,
    one,
    pull_request,
    push,
    repository,
    short_pull,
    workflow_run,
)
from upright.api import Context, Trigger

BRANCH = f"{BASE}:acme/app:fix"
COMMIT = f"{BASE}@{SHA}"
FORK_COMMIT = f"{BASE}@fork:{SHA}"


def keys(context: Context) -> set[str]:
    return {context.thread, *context.joins}


async def shared(*told: tuple[str, dict[str, Any]]) -> set[str]:
    triggers = [await one(event, payload) for event, payload in told]
    return set.intersection(*(keys(trigger.context) for trigger in triggers))


async def test_a_pull_request_is_its_number_its_head_commit_and_its_head_branch() -> None:
    context = (await one("pull_request", pull_request())).context
    assert context.thread == f"{BASE}#7"
    assert context.joins == (COMMIT, BRANCH)


async def test_a_check_that_names_a_pull_request_is_of_its_thread() -> None:
    context = (await one("check_run", check_run(pulls=(short_pull(),)))).context
    assert context.thread == f"{BASE}#7"
    assert context.joins == (COMMIT, BRANCH)


async def test_a_new_check_on_a_new_commit_joins_by_its_branch_alone() -> None:
    later = check_run("success")
    later["check_run"]["head_sha"] = "c" * 40
    assert await shared(("pull_request", pull_request()), ("check_run", later)) == {BRANCH}
    context = (await one("check_run", later)).context
    assert (context.thread, context.joins) == (BRANCH, ())


async def test_a_workflow_run_joins_as_a_check_does() -> None:
    told = [("pull_request", pull_request()), ("workflow_run", workflow_run())]
    assert await shared(*told) == {BRANCH}


async def test_a_push_to_the_branch_joins_and_brings_its_new_commits() -> None:
    context = (await one("push", push())).context
    assert (context.thread, context.joins, context.related) == (BRANCH, (COMMIT,), ())


async def test_a_branch_made_from_an_old_commit_does_not_join_that_commit() -> None:
    context = (await one("push", push("new-branch", distinct=False))).context
    assert context.joins == ()
    assert context.related == (COMMIT,)


async def test_two_branches_with_checks_on_one_commit_stay_two_threads() -> None:
    told = [("check_run", check_run(branch="one")), ("check_run", check_run(branch="two"))]
    assert await shared(*told) == set()


@pytest.mark.parametrize(
    ("event", "payload", "thread"),
    [
        ("check_run", check_run(branch="main"), f"{BASE}/ci/main/unit"),
        ("workflow_run", workflow_run(branch="main"), f"{BASE}/ci/main/CI"),
        ("push", push("main"), COMMIT),
    ],
)
async def test_the_default_branch_joins_nothing(
    event: str, payload: dict[str, Any], thread: str
) -> None:
    context = (await one(event, payload)).context
    assert (context.thread, context.joins) == (thread, ())


async def test_red_and_green_of_a_check_on_the_default_branch_are_one_thread() -> None:
    red, green = check_run("failure", branch="main"), check_run("success", branch="main")
    green["check_run"]["head_sha"] = "c" * 40
    assert await shared(("check_run", red), ("check_run", green)) == {f"{BASE}/ci/main/unit"}


async def test_a_branch_of_the_same_name_in_a_fork_does_not_join() -> None:
    ours, theirs = pull_request(), pull_request(head="eve/app", pull={"number": 8})
    assert await shared(("pull_request", ours), ("pull_request", theirs)) == set()
    context = (await one("pull_request", theirs)).context
    assert context.joins == (FORK_COMMIT, f"{BASE}:eve/app:fix")


async def test_the_default_branch_of_a_fork_is_no_key() -> None:
    head = {"ref": "trunk", "sha": SHA, "repo": repository("eve/app", 12)}
    head["repo"] = {**repository("eve/app", 12), "default_branch": "trunk"}
    payload = pull_request(head="eve/app", pull={"head": head})
    assert (await one("pull_request", payload)).context.joins == (FORK_COMMIT,)


async def test_a_check_on_a_commit_of_a_fork_joins_the_pull_request_from_there() -> None:
    told = [
        ("pull_request", pull_request(head="eve/app")),
        ("check_run", check_run(branch=None)),
    ]
    assert await shared(*told) == {FORK_COMMIT}


async def test_a_workflow_run_of_a_fork_joins_by_the_forks_branch() -> None:
    told = [
        ("pull_request", pull_request(head="eve/app")),
        ("workflow_run", workflow_run(head="eve/app")),
    ]
    assert await shared(*told) == {FORK_COMMIT, f"{BASE}:eve/app:fix"}


async def test_a_pull_request_of_another_repository_that_a_check_names_is_not_ours() -> None:
    upstream = short_pull(99, base=55)
    context = (await one("check_run", check_run(pulls=(upstream,)))).context
    assert context.thread == BRANCH
    assert context.reply_to is None


async def test_a_deleted_fork_leaves_the_commit() -> None:
    head = {"ref": "fix", "sha": SHA, "repo": None}
    context = (await one("pull_request", pull_request(pull={"head": head}))).context
    assert context.joins == (FORK_COMMIT,)
    assert context.code is not None
    assert context.code.fork


@pytest.mark.parametrize(
    ("event", "payload", "fork"),
    [
        ("pull_request", pull_request(), False),
        ("pull_request", pull_request(head="eve/app"), True),
        ("check_run", check_run(), False),
        ("check_run", check_run(branch=None), True),
        ("check_run", check_run(pulls=(short_pull(head=12),)), True),
        ("workflow_run", workflow_run(), False),
        ("workflow_run", workflow_run(head="eve/app"), True),
        ("push", push(), False),
    ],
)
async def test_code_that_was_pushed_to_a_fork_is_marked(
    event: str, payload: dict[str, Any], *, fork: bool
) -> None:
    code = (await one(event, payload)).context.code
    assert code is not None
    assert code.fork is fork


async def test_a_tag_is_a_thread_of_its_own() -> None:
    context = (await one("push", push() | {"ref": "refs/tags/v1"})).context
    assert (context.thread, context.joins) == (f"{BASE}/ref/refs/tags/v1", ())


async def test_a_deleted_branch_brings_no_commit() -> None:
    payload = push() | {"after": "0" * 40, "deleted": True, "commits": []}
    trigger = await one("push", payload)
    assert trigger.context.joins == trigger.context.related == ()
    assert trigger.context.code is not None
    assert trigger.context.code.sha == ""


async def test_names_of_repositories_and_hosts_know_no_case_but_branches_do() -> None:
    loud = push("Fix") | {"repository": repository("ACME/App")}
    assert (await one("push", loud)).context.thread == f"{BASE}:acme/app:Fix"


async def test_another_host_has_other_keys() -> None:
    page = "https://other.example.org/acme/app"
    there = push() | {"repository": {**repository(), "html_url": page}}
    assert await shared(("push", push()), ("push", there)) == set()


async def test_a_comment_belongs_to_its_number_and_links_what_it_names() -> None:
    text = (
        "Like #3 and acme/other#4, see https://git.example.org/acme/app/pull/5 and "
        f"https://git.example.org/acme/app/commit/{SHA}, not #7, not `#8`, not a#9, "
        "not https://elsewhere.example.org/acme/app/issues/10\n```\n#11\n```\n"
    )
    context = (await one("issue_comment", issue_comment(text))).context
    assert (context.thread, context.joins) == (f"{BASE}#7", ())
    assert set(context.related) == {
        f"{BASE}#3",
        "github:git.example.org/acme/other#4",
        f"{BASE}#5",
        COMMIT,
    }


async def test_a_text_with_a_thousand_links_relates_thirty_two() -> None:
    text = " ".join(f"#{number}" for number in range(100, 1_100))
    assert len((await one("issue_comment", issue_comment(text))).context.related) == 32


def facts(trigger: Trigger) -> dict[str, str]:
    return dict(trigger.context.facts)


async def test_a_fact_says_how_the_key_of_a_branch_begins() -> None:
    trigger = await one("check_run", check_run(branch="main"))
    assert facts(trigger)["branch_keys"] + "fix" == BRANCH


async def test_an_answer_goes_to_the_number_or_nowhere() -> None:
    numbered = (await one("check_run", check_run(pulls=(short_pull(),)))).context.reply_to
    assert numbered is not None
    assert (numbered.source, numbered.kind) == ("github", "comment")
    assert numbered.address == (("repo", "acme/app"), ("number", "7"))
    assert (await one("check_run", check_run())).context.reply_to is None
    assert (await one("push", push())).context.reply_to is None


async def test_the_clone_addresses_come_with_the_code() -> None:
    code = (await one("push", push())).context.code
    assert code is not None
    assert (code.repository, code.branch, code.sha) == ("acme/app", "fix", SHA)
    assert "https://git.example.org/acme/app.git" in code.urls
    assert "git@git.example.org:acme/app.git" in code.urls
