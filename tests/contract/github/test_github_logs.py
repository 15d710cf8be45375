"""Why a run of Actions failed: read from its log and its jobs, over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from fixtures.github import BOT, SECRET, TOKEN, check_run, context, signed, started, workflow_run
from upright.api import Trigger
from upright_github.connector import GitHubConnector
from upright_github.sandbox.faults import RestFault, RestRule
from upright_github.sandbox.server import Options, Sandbox, running

LOG: Final = (
    "\ufeff2026-06-01T09:00:00.1234567Z ##[group]Run make test\n"
    "2026-06-01T09:00:01.1234567Z \x1b[31mAssertionError: expected 1, got 2\x1b[0m\n"
    "2026-06-01T09:00:02.1234567Z ##[error]Process completed with exit code 1.\n"
)


@asynccontextmanager
async def bench() -> AsyncIterator[tuple[GitHubConnector, Sandbox]]:
    memory, numbers = context(), iter(range(1_000))
    options = Options(token=TOKEN, secret=SECRET, login=BOT)
    async with (
        running(options, now=memory.now, new_guid=lambda: f"g{next(numbers)}") as sandbox,
        started(memory, api_url=sandbox.url) as connector,
    ):
        yield connector, sandbox


def failed() -> dict[str, Any]:
    """Return a check run as Actions reports a job: without a word of why."""
    payload = check_run()
    payload["check_run"] |= {
        "id": 31,
        "details_url": "https://github.example.org/acme/app/actions/runs/7/job/31",
        "output": {"title": None, "summary": None, "text": None},
        "app": {"id": 15368, "slug": "github-actions", "name": "GitHub Actions"},
    }
    return payload


async def told(connector: GitHubConnector, event: str, payload: dict[str, Any]) -> Trigger:
    (trigger,) = await connector.receive(signed(event, payload))
    return trigger


@pytest.mark.feature("ci.log_tail_github")
async def test_a_failed_job_tells_the_lines_of_its_log_that_say_why() -> None:
    async with bench() as (connector, sandbox):
        sandbox.actions.logs[31] = "noise\n" * 50_000 + LOG
        trigger = await told(connector, "check_run", failed())
    assert dict(trigger.context.facts)["error"].splitlines() == [
        "AssertionError: expected 1, got 2",
        "##[error]Process completed with exit code 1.",
    ]
    assert "AssertionError" in trigger.content.text


@pytest.mark.feature("ci.log_tail_github")
async def test_secrets_of_a_log_are_masked() -> None:
    token = "ghs_" + "a1" * 18
    async with bench() as (connector, sandbox):
        sandbox.actions.logs[31] = f"error: {token} is refused\n"
        trigger = await told(connector, "check_run", failed())
    assert token not in repr(trigger.content) + repr(trigger.context)
    assert dict(trigger.context.facts)["error"] == "error: [masked] is refused"


async def test_a_failed_workflow_tells_its_failed_jobs_and_steps() -> None:
    steps = [
        {"number": 1, "name": "Set up job", "conclusion": "success"},
        {"number": 2, "name": "Run make test", "conclusion": "failure"},
    ]
    async with bench() as (connector, sandbox):
        sandbox.actions.jobs[901] = [
            {"name": "unit", "conclusion": "failure", "steps": steps},
            {"name": "lint", "conclusion": "success", "steps": []},
        ]
        facts = dict((await told(connector, "workflow_run", workflow_run())).context.facts)
    assert (facts["failed"], facts["error"]) == ("unit", "step 2: Run make test")


@pytest.mark.parametrize("fault", [RestFault.ERROR_502, RestFault.DROP, RestFault.PRIMARY])
async def test_a_log_that_can_not_be_read_holds_nothing_up(fault: RestFault) -> None:
    async with bench() as (connector, sandbox):
        sandbox.actions.logs[31] = LOG
        sandbox.rest.faults.rest += [RestRule(fault=fault, method="GET", count=5)]
        trigger = await told(connector, "check_run", failed())
    assert trigger.kind == "ci.failed"
    assert "error" not in dict(trigger.context.facts)


@pytest.mark.parametrize("change", ["success", "another app", "no log"])
async def test_nothing_is_asked_where_there_is_nothing_to_find(change: str) -> None:
    payload = failed()
    if change == "success":
        payload["check_run"]["conclusion"] = "success"
    if change == "another app":
        payload["check_run"]["app"]["slug"] = "some-ci"
    async with bench() as (connector, sandbox):
        trigger = await told(connector, "check_run", payload)
        assert len(sandbox.rest.calls) == (change == "no log")
    assert "error" not in dict(trigger.context.facts)
