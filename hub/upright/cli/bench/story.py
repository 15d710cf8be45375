"""Story: the demo's scenario once more on a stage that dies again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from upright.cli.bench.rig import Rig
from upright.cli.demo import project as repository
from upright.cli.demo.children import DemoError
from upright.cli.demo.project import Project, draw, git
from upright.cli.demo.stage import CI_APP, MEMBER, REPOSITORY, listed

LOOK_S: Final = 0.1
GO_ON: Final = "Go on, please: the machine is back."
WITNESS: Final = "witness.txt"
_WITNESS_TEST: Final = f"""import unittest


class WitnessTest(unittest.TestCase):
    def test_that_leaves_a_trace(self):
        with open({WITNESS!r}, "a", encoding="ascii") as file:
            file.write("ran\\n")
"""
_SLOW_TEST: Final = """import time, unittest


class SlowTest(unittest.TestCase):
    def test_that_takes_its_time(self):
        time.sleep(0.5)
"""
TRACES: Final = {"tests/test_witness.py": _WITNESS_TEST, "tests/test_slow.py": _SLOW_TEST}
"""Tests of the project that let a run be counted by its effect, and be met by a kill."""


class StuckError(Exception):
    """A story did not end within its time; the sentence says where it stood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """A pull request of one story, and its branch."""

    project: Project
    number: int


@dataclass(slots=True, kw_only=True)
class Teller:
    """Tells stories on a rig, each within *within_s*."""

    rig: Rig
    within_s: float

    async def tell(self, seed: int) -> Pull:
        """Tell one story to its end.

        Raises:
            StuckError: it did not end in time, or a person is asked who should not be.
        """
        await self._all_up()
        pull = await self._open(seed)
        self.rig.begin()
        try:
            async with asyncio.timeout(self.within_s):
                await self._play(pull)
        except TimeoutError as error:
            said = (
                f"story {seed} did not end within {self.within_s:g} s; {await self._stands(pull)}"
            )
            raise StuckError(said) from error
        return pull

    async def _stands(self, pull: Pull) -> str:
        try:
            item = await self._work(pull)
        except DemoError as error:
            return str(error)
        return "no item" if item is None else f"its item is {item['state']}: {item['reason']}"

    async def _play(self, pull: Pull) -> None:
        await self._check(pull, "failure", pull.project.red_sha, names_pull=True)
        await self._until(lambda: self._is_pushed(pull))
        await self._go_green(pull)
        await self._until(lambda: self._is_completed(pull))

    # ------------------------------------------------------------------ what happens
    async def _all_up(self) -> None:
        async with asyncio.timeout(self.within_s):
            await self._until(self._is_online)

    async def _open(self, seed: int) -> Pull:
        """Push a branch with the bug that *seed* draws, and open a pull request for it."""
        drawn = draw(seed)
        files = {**drawn.bug.files(), **TRACES}
        plan = self.rig.plan
        pushed = await asyncio.to_thread(_push, plan.folder, plan.project, drawn.branch, files)
        body = {
            "title": drawn.title,
            "head": pushed.branch,
            "sha": pushed.red_sha,
            "author": MEMBER,
            "base_sha": pushed.base_sha,
        }
        opened = await self.rig.stage.github.post(f"/_sandbox/repos/{REPOSITORY}/pulls", body)
        return Pull(project=pushed, number=int(opened["number"]))

    async def _go_green(self, pull: Pull) -> None:
        pushed = await self._head(pull)
        body = {
            "branch": pull.project.branch,
            "before": pull.project.red_sha,
            "after": pushed,
            "author": MEMBER,
            "commits": [{"id": pushed, "message": "fix"}],
        }
        await self.rig.stage.github.post(f"/_sandbox/repos/{REPOSITORY}/pushes", body)
        await self._check(pull, "success", pushed, names_pull=False)

    async def _check(self, pull: Pull, conclusion: str, sha: str, *, names_pull: bool) -> None:
        """Let CI tell how it ended; what the hub didn't answer is delivered again until it does."""
        body = {
            "name": "tests",
            "sha": sha,
            "branch": pull.project.branch,
            "conclusion": conclusion,
            "title": "Tests",
            "summary": f"Run: {repository.TEST_COMMAND}",
            "app": CI_APP,
            "actor": MEMBER,
            "pulls": names_pull,
        }
        github = self.rig.stage.github
        told = await github.post(f"/_sandbox/repos/{REPOSITORY}/check-runs", body)
        for guid in told["deliveries"]:
            await github.post("/_sandbox/settle", {})
            while not await self._answered(guid):
                await self.rig.clock.sleep(LOOK_S)
                await github.post(f"/_sandbox/deliveries/{guid}/redeliver", {})
                await github.post("/_sandbox/settle", {})

    async def _answered(self, guid: str) -> bool:
        told = await self.rig.stage.github.get(f"/_sandbox/deliveries/{guid}")
        return any(200 <= attempt["status"] < 300 for attempt in told["attempts"])

    # ------------------------------------------------------------------ what is seen
    async def _until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Look again and again; a hub that is down is looked at later."""
        while True:
            try:
                if await holds():
                    return
                await self._answer_people()
            except DemoError:
                pass  # it was killed, and comes back
            await self.rig.clock.sleep(LOOK_S)

    async def _answer_people(self) -> None:
        """Say "go on" where a killed shim made the worker ask; any other question is a finding."""
        for asked in listed(await self.rig.stage.hub.get("/v1/requests")):
            if asked["state"] != "asked":
                continue
            if not self.rig.shim_killed:
                said = f"a person is asked: {asked['prompt']}"
                raise StuckError(said)
            await self.rig.stage.hub.post(f"/v1/requests/{asked['id']}/answer", {"text": GO_ON})

    async def _is_online(self) -> bool:
        devices = listed(await self.rig.stage.hub.get("/v1/devices"))
        return any(one["online"] for one in devices)

    async def _is_pushed(self, pull: Pull) -> bool:
        return await self._head(pull) != pull.project.red_sha

    async def _head(self, pull: Pull) -> str:
        return await asyncio.to_thread(repository.head, pull.project)

    async def _is_completed(self, pull: Pull) -> bool:
        item = await self._work(pull)
        return item is not None and item["state"] == "completed"

    async def _work(self, pull: Pull) -> dict[str, Any] | None:
        items = listed(await self.rig.stage.hub.get("/v1/work"))
        return next((one for one in items if pull.project.branch in one["goal"]), None)


def _push(folder: Path, project: Project, branch: str, files: Mapping[str, str]) -> Project:
    """Push a branch from a clone of its own: nobody touches the device's checkout."""
    clone = folder / f"author-{branch.rpartition('/')[2]}"
    git(folder, "clone", "--quiet", str(project.remote), str(clone))
    git(clone, "checkout", "--quiet", "-b", branch, project.base_sha)
    for name, text in files.items():
        (clone / name).write_text(text, encoding="utf-8")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "-m", "Rework")
    git(clone, "push", "--quiet", "origin", branch)
    return replace(project, branch=branch, red_sha=git(clone, "rev-parse", "HEAD"))
