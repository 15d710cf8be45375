"""Logs: the ends of the logs of failed jobs, read while a webhook waits, and never for long.

GitLab gives a webhook ten seconds. What could not be read in time is left out: the trigger says
so, and a person or an agent follows its link.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from upright.kit.calls import LostError, NotSentError
from upright.kit.mask import masked
from upright_ci.gitlab.client import GitLabClient
from upright_ci.gitlab.runs import Logs

MAX_JOBS: Final = 3
WITHIN_S: Final = 4.0


async def tails(
    client: GitLabClient | None, project: str, jobs: tuple[int, ...], log: logging.Logger
) -> Logs:
    """Return the ends of some jobs' logs, secrets masked, by the job's id."""
    found = dict[int, str]()
    if client is None or not jobs:
        return found
    try:
        async with asyncio.timeout(WITHIN_S):
            for job in jobs[:MAX_JOBS]:
                found[job] = masked(await client.log_tail(project, job))
    except (TimeoutError, NotSentError, LostError) as error:
        why = str(error) or f"not within {WITHIN_S:g} s"
        log.warning("gitlab.no_log", extra={"project": project, "why": why})
    return found
