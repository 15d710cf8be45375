from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fixtures.github import BOT, check_run, one, user, workflow_run
from upright.api import ActorKind, Channel


@pytest.mark.parametrize(
    ("conclusion", "kind"),
    [
        ("success", "ci.succeeded"),
        ("failure", "ci.failed"),
        ("timed_out", "ci.failed"),
        ("startup_failure", "ci.failed"),
        ("cancelled", "ci.cancelled"),
        ("neutral", "ci.neutral"),
        ("skipped", "ci.skipped"),
        ("stale", "ci.stale"),
        ("action_required", "ci.action_required"),
        ("a_conclusion_of_tomorrow", "ci.completed"),
    ],
)
async def test_each_conclusion_has_its_kind(conclusion: str, kind: str) -> None:
    assert (await one("check_run", check_run(conclusion))).kind == kind
    assert (await one("workflow_run", workflow_run(conclusion))).kind == kind


@pytest.mark.parametrize(
    ("status", "kind"), [("queued", "ci.queued"), ("in_progress", "ci.started")]
)
async def test_each_status_has_its_kind(status: str, kind: str) -> None:
    payload = check_run()
    payload["check_run"] |= {"status": status, "conclusion": None, "completed_at": None}
    assert (await one("check_run", payload | {"action": "created"})).kind == kind


@pytest.mark.parametrize(
    ("action", "kind"),
    [("rerequested", "ci.rerun_requested"), ("requested_action", "ci.action_requested")],
)
async def test_what_people_ask_of_a_check_is_no_result(action: str, kind: str) -> None:
    assert (await one("check_run", check_run() | {"action": action})).kind == kind


@pytest.mark.feature("ci.github_actions")
async def test_a_check_tells_its_name_its_end_and_its_first_lines() -> None:
    trigger = await one("check_run", check_run())
    assert trigger.channel is Channel.CI
    assert trigger.content.title == "unit: failure"
    assert trigger.content.text == "1 failed\n\ntest_a"
    assert trigger.occurred_at == datetime(2026, 6, 1, 9, 4, tzinfo=UTC)
    facts = dict(trigger.context.facts)
    assert facts["check"] == "unit"
    assert facts["conclusion"] == "failure"
    assert facts["branch"] == "fix"
    assert facts["repository"] == "acme/app"


@pytest.mark.feature("ci.github_actions")
async def test_a_workflow_run_tells_its_attempt() -> None:
    trigger = await one("workflow_run", workflow_run())
    assert trigger.content.title == "CI: failure"
    assert dict(trigger.context.facts)["attempt"] == "2"
    assert trigger.actor.id == "app:github-actions"


async def test_a_long_output_is_cut_between_lines_and_says_what_is_left_out() -> None:
    payload = check_run()
    text = "\n".join(f"line {number} of the log 👩‍👩‍👧‍👦" for number in range(5_000))
    payload["check_run"]["output"]["text"] = text
    shown = (await one("check_run", payload)).content.text
    *lines, last = shown.splitlines()
    whole = f"1 failed\n\ntest_a\n\n{text}"
    assert "\n".join(lines) == whole[: len("\n".join(lines))]
    assert lines[-1].endswith("of the log 👩‍👩‍👧‍👦")
    kept = len("\n".join(lines)) + 1
    assert last == (
        f"[{len(whole) - kept} more characters: https://git.example.org/acme/app/runs/900]"
    )


async def test_one_endless_line_is_cut_too() -> None:
    payload = check_run()
    payload["check_run"]["output"] = {"title": "x" * 50_000, "summary": None, "text": None}
    shown = (await one("check_run", payload)).content.text
    assert shown.startswith("x" * 8_000 + "\n[42000 more characters")


async def test_the_actor_of_a_check_is_its_app_even_where_we_pushed_the_commit() -> None:
    trigger = await one("check_run", check_run() | {"sender": user(BOT)})
    assert (trigger.actor.id, trigger.actor.kind) == ("app:some-ci", ActorKind.BOT)
    trigger = await one("workflow_run", workflow_run() | {"sender": user(BOT)})
    assert trigger.actor.kind is ActorKind.BOT


async def test_a_check_of_our_own_app_is_our_own() -> None:
    assert (await one("check_run", check_run(), app_id=3)).actor.kind is ActorKind.SELF
    trigger = await one("check_run", check_run(), bot_login="some-ci[bot]")
    assert trigger.actor.kind is ActorKind.SELF


async def test_created_and_completed_with_one_result_are_told_once() -> None:
    created = await one("check_run", check_run() | {"action": "created"})
    completed = await one("check_run", check_run())
    assert created.dedupe == completed.dedupe


async def test_a_second_end_of_the_same_check_is_news() -> None:
    again = check_run()
    again["check_run"]["completed_at"] = "2026-06-01T11:00:00Z"
    first, second = await one("check_run", check_run()), await one("check_run", again)
    assert first.dedupe[1] != second.dedupe[1]


async def test_a_second_attempt_of_a_workflow_is_news() -> None:
    again = workflow_run()
    again["workflow_run"]["run_attempt"] = 3
    first, second = await one("workflow_run", workflow_run()), await one("workflow_run", again)
    assert first.dedupe[1] != second.dedupe[1]


async def test_a_failed_check_tells_the_lines_that_say_why_and_one_that_passed_tells_none() -> None:
    payload = check_run()
    payload["check_run"]["output"]["summary"] = "2 passed\ntest_a: AssertionError: 1 != 2"
    failed = dict((await one("check_run", payload)).context.facts)
    assert (failed["failed"], failed["error"]) == (
        "unit",
        "1 failed\ntest_a: AssertionError: 1 != 2",
    )
    payload["check_run"]["conclusion"] = "success"
    passed = dict((await one("check_run", payload)).context.facts)
    assert "failed" not in passed
    assert "error" not in passed
