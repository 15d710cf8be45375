"""Story: what happens in the demo, from the red check to the completed work item."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from upright.cli.demo import project as repository
from upright.cli.demo.children import DemoError
from upright.cli.demo.project import Drawn, Project, TestRun
from upright.cli.demo.speaker import Speaker
from upright.cli.demo.stage import CI_APP, MEMBER, REPOSITORY, Sabotage, Stage, listed

CHECK: Final = "tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the demo waits, in seconds: for the fix, and for the end."""

    fix_s: float
    end_s: float


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What happened, for the checks; what did not happen is None or empty."""

    red: TestRun | None = None
    number: int | None = None
    pushed: str = ""
    green: TestRun | None = None
    router_calls_before: int = 0
    work: dict[str, Any] | None = None
    success: dict[str, Any] | None = None
    gave_up: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything that the story needs."""

    stage: Stage
    drawn: Drawn
    project: Project
    folder: Path
    speaker: Speaker
    sabotage: Sabotage | None
    patience: Patience


async def play(scene: Scene) -> Outcome:
    """Play the story as far as it goes; what went wrong is in ``gave_up``."""
    outcome = Outcome()
    try:
        await _go_red(scene, outcome)
        await _wait_for_fix(scene, outcome)
        await _go_green(scene, outcome)
        await _wait_for_end(scene, outcome)
    except DemoError as error:
        outcome.gave_up = str(error)
        scene.speaker.step(f"gave up: {error}")
    await _look(scene, outcome)
    return outcome


# ------------------------------------------------------------------ red
async def _go_red(scene: Scene, outcome: Outcome) -> None:
    project, github, say = scene.project, scene.stage.github, scene.speaker.step
    await github.post(
        "/_sandbox/repos", {"full_name": REPOSITORY, "clone_url": str(project.remote)}
    )
    opened = await github.post(
        f"/_sandbox/repos/{REPOSITORY}/pulls",
        {
            "title": scene.drawn.title,
            "head": project.branch,
            "sha": project.red_sha,
            "author": MEMBER,
            "base_sha": project.base_sha,
        },
    )
    outcome.number = int(opened["number"])
    say(f"{MEMBER} opens pull request #{outcome.number}: {scene.drawn.title}")
    outcome.red = await _ci(scene, project.red_sha, "ci-red")
    if outcome.red.green:
        raise DemoError("the project's tests are green with the bug in it")
    scene.speaker.note("webhook")
    await _report(scene, project.red_sha, outcome.red)
    say("CI is red; GitHub sends the signed webhook")


async def _ci(scene: Scene, sha: str, name: str) -> TestRun:
    """Run the project's tests at a commit, in a clone that nobody else touches."""
    folder = scene.folder / name
    return await asyncio.to_thread(repository.test_at, scene.project, sha, folder)


async def _report(scene: Scene, sha: str, run: TestRun) -> dict[str, Any]:
    """Let GitHub tell how the check ended; the second one names no pull request (B6.10)."""
    told: dict[str, Any] = await scene.stage.github.post(
        f"/_sandbox/repos/{REPOSITORY}/check-runs",
        {
            "name": CHECK,
            "sha": sha,
            "branch": scene.project.branch,
            "conclusion": "success" if run.green else "failure",
            "title": "Tests",
            "summary": f"Run: {repository.TEST_COMMAND}",
            "text": "" if run.green else run.output[-3000:],
            "app": CI_APP,
            "actor": MEMBER,
            "pulls": not run.green,
        },
    )
    return told


# ------------------------------------------------------------------ the fix
async def _wait_for_fix(scene: Scene, outcome: Outcome) -> None:
    project = scene.project
    seen: set[str] = set()

    async def pushed() -> bool:
        await _narrate(scene, seen)
        outcome.pushed = await asyncio.to_thread(repository.head, project)
        return outcome.pushed != project.red_sha

    if not await _until(scene, pushed, scene.patience.fix_s):
        outcome.pushed = ""
        raise DemoError("no commit was pushed to the pull request's branch")
    scene.speaker.note("pushed")
    scene.speaker.step(f"the worker pushed {outcome.pushed[:10]}")


async def _narrate(scene: Scene, seen: set[str]) -> None:
    """Say what the worker does, as the hub tells it."""
    for item in listed(await scene.stage.hub.get("/v1/work")):
        shown = await scene.stage.hub.get(f"/v1/work/{item['id']}")
        if item["id"] not in seen:
            seen.add(item["id"])
            scene.speaker.note("opened")
            scene.speaker.step(f"a worker is on it: {item['goal']}")
        for job in listed(shown.get("jobs", [])):
            if job["outcome"] and job["id"] not in seen:
                seen.add(job["id"])
                scene.speaker.note("first_command")
                scene.speaker.step(f"  $ {_command(job)} → {_ended(job)}")


def _command(job: dict[str, Any]) -> str:
    argv = [str(part) for part in job["spec"]["argv"]]
    line = " ".join(part.rsplit("/", 1)[-1] if part.startswith("/") else part for part in argv)
    return line if len(line) <= 70 else line[:69] + "…"


def _ended(job: dict[str, Any]) -> str:
    outcome, code = job["outcome"], job["code"]
    return f"exit {code}" if outcome == "exited" else str(outcome)


async def _until(scene: Scene, holds: Callable[[], Awaitable[bool]], within_s: float) -> bool:
    """Look again and again until it holds; False when time is up, or a person is asked."""
    clock = scene.speaker.clock
    until = clock.monotonic() + within_s
    while clock.monotonic() < until:
        if await holds():
            return True
        scene.stage.children.check()
        for request in listed(await scene.stage.hub.get("/v1/requests")):
            said = f"a person is asked: {request['prompt'].splitlines()[0]}"
            raise DemoError(said)
        await scene.stage.children.pause()
    return False


# ------------------------------------------------------------------ green
async def _go_green(scene: Scene, outcome: Outcome) -> None:
    github, say = scene.stage.github, scene.speaker.step
    outcome.green = await _ci(scene, outcome.pushed, "ci-green")
    await github.post(
        f"/_sandbox/repos/{REPOSITORY}/pushes",
        {
            "branch": scene.project.branch,
            "before": scene.project.red_sha,
            "after": outcome.pushed,
            "author": MEMBER,
            "commits": [{"id": outcome.pushed, "message": "fix"}],
        },
    )
    await github.post("/_sandbox/settle", {})
    outcome.router_calls_before = await router_calls(scene.stage)
    if scene.sabotage is Sabotage.SUCCESS_DROPPED:
        fault = {"on": "delivery", "fault": "drop", "event": "check_run", "conclusion": "success"}
        await github.post("/_sandbox/faults", fault)
    scene.speaker.note("success")
    outcome.success = await _report(scene, outcome.pushed, outcome.green)
    said = "green" if outcome.green.green else "still red"
    say(f"CI ran the tests on {outcome.pushed[:10]}: {said}; the next webhook is on its way")


async def router_calls(stage: Stage) -> int:
    """Count the router's model calls: by the model server's own count, else by the ledger."""
    if stage.model is not None:
        stats = await stage.model.get("/_scripted/stats")
        return int(stats["by_agent"].get("router", 0))
    sessions = listed(await stage.hub.get("/v1/sessions"))
    routers = [one["id"] for one in sessions if one["kind"] == "router"]
    costs = await stage.hub.get("/v1/costs")
    return sum(int(row["calls"]) for row in costs["by_session"] if row["session_id"] in routers)


async def _wait_for_end(scene: Scene, outcome: Outcome) -> None:
    async def ended() -> bool:
        items = listed(await scene.stage.hub.get("/v1/work"))
        outcome.work = items[0] if items else None
        return outcome.work is not None and outcome.work["state"] == "completed"

    if not await _until(scene, ended, scene.patience.end_s):
        state = outcome.work["state"] if outcome.work else "not opened"
        said = f"the work item is {state}, not completed"
        raise DemoError(said)
    scene.speaker.note("completed")
    scene.speaker.step("the work item is completed, with evidence for each criterion")


async def _look(scene: Scene, outcome: Outcome) -> None:
    """Read the work item whole, for the checks."""
    items = listed(await scene.stage.hub.get("/v1/work"))
    if items:
        outcome.work = await scene.stage.hub.get(f"/v1/work/{items[0]['id']}")
