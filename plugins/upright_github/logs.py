"""Logs: why a run of GitHub Actions failed; its payload does not say.

A check run names its job, and the end of that job's log is read; a workflow run names itself, and
its jobs are listed. Both while a webhook waits, so never for long: GitHub gives it ten seconds.
What could not be read in time is left out, and a person or an agent follows the link.

Source: docs.github.com, "Workflow jobs": "Download job logs for a workflow run", "List jobs for a
workflow run attempt".
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from upright.api import ConnectorContext, Trigger
from upright.kit import ci
from upright_github.client import GitHubClient, LostError, NotSentError

WITHIN_S: Final = 4.0
APP: Final = "github-actions"
_RUN: Final = re.compile(
    r"/actions/runs/(?P<run>\d{1,18})(?:/job/(?P<job>\d{1,18}))?(?!\w)", re.ASCII
)


class Logs:
    """Reads why runs failed."""

    def __init__(self, client: GitHubClient, context: ConnectorContext) -> None:
        self._client = client
        self._context = context

    async def explained(self, trigger: Trigger) -> Trigger:
        """Return a failed run of Actions with its failed jobs and the lines that say why."""
        facts, code = dict(trigger.context.facts), trigger.context.code
        if trigger.kind != ci.FAILED or facts.get("app") != APP or code is None:
            return trigger
        hits = [hit for link in trigger.context.links if (hit := _RUN.search(link))]
        hit = next((one for one in hits if one["job"]), next(iter(hits), None))
        if hit is None:
            return trigger
        path = f"/repos/{code.repository}/actions"
        try:
            async with asyncio.timeout(WITHIN_S):
                found = await self._found(path, hit, facts)
        except (TimeoutError, NotSentError, LostError) as error:
            why = str(error) or f"not within {WITHIN_S:g} s"
            self._context.log.warning("github.no_log", extra={"why": why})
            return trigger
        return ci.explained(trigger, found)

    async def _found(
        self, path: str, hit: re.Match[str], facts: Mapping[str, str]
    ) -> tuple[ci.Failure, ...]:
        if not hit["job"]:
            attempt = facts.get("attempt", "1")
            return await self._jobs(f"{path}/runs/{hit['run']}/attempts/{attempt}/jobs")
        log = await self._client.log_tail(f"{path}/jobs/{hit['job']}/logs")
        return (ci.Failure(name=facts["check"], lines=ci.first_errors(log)),) if log else ()

    async def _jobs(self, path: str) -> tuple[ci.Failure, ...]:
        """Return the failed jobs of a run, each with the steps that failed."""
        answer = await self._client.get(path, per_page="100")
        listed = answer.value.get("jobs") if isinstance(answer.value, dict) else None
        jobs = [one for one in listed or () if isinstance(one, dict)]
        return tuple(
            ci.Failure(name=str(job.get("name")), lines=_steps(job.get("steps")))
            for job in jobs
            if job.get("conclusion") in {"failure", "timed_out", "startup_failure"}
        )


def _steps(steps: object) -> tuple[str, ...]:
    found = [one for one in steps if isinstance(one, dict)] if isinstance(steps, list) else []
    failed = [one for one in found if one.get("conclusion") == "failure"]
    return tuple(f"step {one.get('number')}: {one.get('name')}" for one in failed)
