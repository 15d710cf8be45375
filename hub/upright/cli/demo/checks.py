"""Checks: whether the job was done, asked of everybody but the one who did it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from upright.cli.demo.children import DemoError
from upright.cli.demo.project import git
from upright.cli.demo.stage import BOT, REPOSITORY, listed
from upright.cli.demo.story import Outcome, Scene, router_calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One check: what should hold, whether it does, and what was seen."""

    name: str
    ok: bool
    detail: str


Check = Callable[[Scene, Outcome], Awaitable[tuple[bool, str]]]


async def _red_before(_: Scene, outcome: Outcome) -> tuple[bool, str]:
    run = outcome.red
    return run is not None and not run.green, "CI's own run at the first commit"


async def _one_fix_commit(scene: Scene, outcome: Outcome) -> tuple[bool, str]:
    project = scene.project
    words = ("log", "--format=%h %s", f"{project.red_sha}..refs/heads/{project.branch}")
    said = await asyncio.to_thread(git, project.remote, *words)
    lines = said.splitlines()
    return len(lines) == 1 and bool(outcome.pushed), "; ".join(lines) or "nothing was pushed"


async def _only_the_cause(scene: Scene, outcome: Outcome) -> tuple[bool, str]:
    if not outcome.pushed:
        return False, "nothing was pushed"
    words = ("diff", "--name-only", scene.project.red_sha, outcome.pushed)
    changed = (await asyncio.to_thread(git, scene.project.remote, *words)).split()
    return changed == [scene.drawn.bug.path], ", ".join(changed)


async def _green_after(_: Scene, outcome: Outcome) -> tuple[bool, str]:
    run = outcome.green
    return run is not None and run.green, "CI's own run at the pushed commit"


async def _checkout_untouched(scene: Scene, _: Outcome) -> tuple[bool, str]:
    checkout = scene.project.checkout
    dirt = await asyncio.to_thread(git, checkout, "status", "--porcelain")
    head = await asyncio.to_thread(git, checkout, "rev-parse", "HEAD")
    return not dirt and head == scene.project.base_sha, dirt or "the person's own files"


async def _one_comment(scene: Scene, outcome: Outcome) -> tuple[bool, str]:
    path = f"/_sandbox/repos/{REPOSITORY}/issues/{outcome.number}/comments"
    comments = listed(await scene.stage.github.get(path))
    ours = [one for one in comments if one["user"]["login"] == BOT]
    return len(ours) == 1, f"{len(ours)} on pull request #{outcome.number}"


async def _no_router_again(scene: Scene, outcome: Outcome) -> tuple[bool, str]:
    before, after = outcome.router_calls_before, await router_calls(scene.stage)
    return 0 < before == after, f"{before} model calls before, {after} after"


async def _success_passed_through(scene: Scene, outcome: Outcome) -> tuple[bool, str]:
    if outcome.success is None:
        return False, "it was never sent"
    guid = outcome.success["deliveries"][0]
    delivery = await scene.stage.github.get(f"/_sandbox/deliveries/{guid}")
    inbox = listed(await scene.stage.hub.get("/v1/inbox?limit=100"))
    woke = [one for one in inbox if one["kind"] == "ci.fixed"]
    fates = ", ".join(str(one["disposition"]) for one in woke) or "no trigger"
    return [one["disposition"] for one in woke] == ["woke"], f"{fates}; GUID {delivery['guid'][:8]}"


async def _completed(_: Scene, outcome: Outcome) -> tuple[bool, str]:
    work: dict[str, Any] = outcome.work or {"state": "not opened", "criteria": [], "evidence": []}
    proven = {one["criterion"] for one in work["evidence"] if one["proof"]}
    ok = work["state"] == "completed" and proven >= set(work["criteria"]) != set()
    return ok, f"{work['state']}, {len(proven)} of {len(work['criteria'])} criteria proven"


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("the tests were red before", _red_before),
    ("one fix commit is on the branch", _one_fix_commit),
    ("it changes the file with the bug, and nothing else", _only_the_cause),
    ("the tests are green after it", _green_after),
    ("the developer's own checkout is untouched", _checkout_untouched),
    ("one comment is on the pull request", _one_comment),
    ("the success reached the worker", _success_passed_through),
    ("the router was not asked again", _no_router_again),
    ("the work item is completed with evidence", _completed),
)


async def judge(scene: Scene, outcome: Outcome) -> list[Verdict]:
    """Run every check; one that can't be made has failed."""
    verdicts = []
    for name, check in CHECKS:
        try:
            ok, detail = await check(scene, outcome)
        except DemoError as error:
            ok, detail = False, str(error)
        verdicts.append(Verdict(name=name, ok=ok, detail=detail))
        scene.speaker.check(name, ok=ok, detail=detail)
    return verdicts
