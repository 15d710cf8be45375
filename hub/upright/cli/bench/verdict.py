"""Verdict: what was lost, doubled or stuck, once the dust has settled; the hub has been stopped.

The reference is what others know: the client's own log of answered ids, the commits in the
repository, the comments at GitHub's sandbox, and what each test run left in its worktree.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from upright.cli.bench.load import FIRST_ID, acknowledged
from upright.cli.bench.story import WITNESS, Pull
from upright.cli.demo.client import Web
from upright.cli.demo.project import git
from upright.cli.demo.stage import BOT, REPOSITORY, listed
from upright.store import oracle, trail
from upright.store.storage import Storage
from upright.store.trail import Ran

SOURCE: Final = "github"
KIND: Final = "comment.created"


@dataclass(slots=True, kw_only=True)
class Findings:
    """What is wrong, each in a sentence; ``acknowledged`` is how many ids were answered."""

    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)


async def look(store: Storage, log: Path, findings: Findings) -> None:
    """Compare the rows with the client's log and with what commands left behind."""
    ids = await asyncio.to_thread(acknowledged, log)
    findings.acknowledged = len(ids)
    fates = await store.read(lambda c: trail.taken_in(c, SOURCE))
    findings.lost += [
        f"comment {number} was answered, and is not there"
        for number in ids
        if not fates.get(f"comment:{number}:created:")
    ]
    stored = await store.read(lambda c: trail.natives(c, SOURCE, KIND))
    findings.doubled += [
        f"comment {native} is stored {times} times"
        for native, times in stored.items()
        if times > 1 and int(native) >= FIRST_ID
    ]
    for stalled in [*await store.read(oracle.stalled), *await store.read(oracle.unheard)]:
        findings.stuck.append(f"{stalled.id} is {stalled.state}, and {stalled.missing}")
    ran = await store.read(trail.commands)
    await asyncio.to_thread(_effects, ran, findings)


def _effects(ran: Sequence[Ran], findings: Findings) -> None:
    """Count what test runs left in their worktrees: one trace for each that ran to its end.

    One whose end is lost may have left a trace or not; more traces than starts are a second start.
    """
    runs: defaultdict[str, list[Ran]] = defaultdict(list)
    for one in ran:
        if "unittest" in one.argv:
            runs[one.cwd].append(one)
    for cwd, mine in runs.items():
        file = Path(cwd) / WITNESS
        traces = len(file.read_bytes().splitlines()) if file.exists() else 0
        ended = sum(one.outcome == "exited" for one in mine)
        begun = sum(one.started != "no" for one in mine)
        if traces > begun:
            findings.doubled.append(f"{begun} test runs were started in {cwd}, and {traces} ran")
        if traces < ended:
            findings.lost.append(f"{ended} test runs ended in {cwd}, and {traces} ran")


async def judge(pull: Pull, github: Web, findings: Findings) -> None:
    """Count one story's fix commits and comments: one of each."""
    project, name = pull.project, pull.project.branch
    words = ("log", "--format=%h", f"{project.red_sha}..refs/heads/{name}")
    commits = (await asyncio.to_thread(git, project.remote, *words)).split()
    path = f"/_sandbox/repos/{REPOSITORY}/issues/{pull.number}/comments"
    comments = [one for one in listed(await github.get(path)) if one["user"]["login"] == BOT]
    for what, count in (("fix commits", len(commits)), ("comments", len(comments))):
        if count > 1:
            findings.doubled.append(f"{name} has {count} {what}")
        if count < 1:
            findings.lost.append(f"{name} has no {what}")
