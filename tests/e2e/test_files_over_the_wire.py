"""The file tools' program as a real daemon runs it: judged, confined, answered; beneath, alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fixtures.clone import Clone
from fixtures.hub_and_execd import Execd, Hub, execd, serving_hub
from upright_execd.confinement import enforceable
from upright_wire.command import Ending
from upright_wire.spec import Confinement, Stdin

PROFILES = [Confinement.NONE, Confinement.WORKSPACE, Confinement.WORKSPACE_NO_NETWORK]


@dataclass
class Desk:
    """A hub, a daemon with a clone as its workspace, and calls of the program between them."""

    hub: Hub
    execd: Execd
    clone: Clone
    calls: int = 0

    async def ask(
        self, operation: str, profile: Confinement, stdin: bytes = b"", **given: object
    ) -> dict[str, Any] | None:
        """Run one operation; None: the device denied it."""
        self.calls += 1
        name = f"jb_{self.calls}"
        request = json.dumps({"worktree": self.clone.claim(), **given})
        await self.hub.command(
            *self.hub.dispatcher.files,
            operation,
            request,
            cwd=self.execd.root,
            command_id=name,
            confinement=profile,
            stdin=Stdin(bytes=len(stdin), sha256=hashlib.sha256(stdin).hexdigest()),
        )
        if stdin:
            assert self.hub.dispatcher.link is not None
            self.hub.dispatcher.link.send_stdin(name, stdin)
        outcome = await self.hub.final(name)
        if outcome.ending is Ending.DENIED:
            assert outcome.text == "confinement_unavailable"
            return None
        said: dict[str, Any] = json.loads(self.hub.output(name))
        return said


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with serving_hub() as hub, execd(tmp_path) as program:
        clone = Clone(program.root)
        clone.make()
        await program.pair(hub)
        await program.run(hub)
        await hub.dispatcher.until(lambda: hub.dispatcher.files)
        yield Desk(hub=hub, execd=program, clone=clone)


@pytest.mark.clause("E10.3", "B14.6")
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_worktree_is_made_written_and_read_within_its_confinement(
    desk: Desk, profile: Confinement
) -> None:
    said = await desk.ask("worktree", profile)
    if profile not in enforceable():
        assert said is None
        assert not desk.clone.worktree.exists()
        return
    assert said is not None
    assert said.get("path") == str(desk.clone.worktree), said
    written = await desk.ask("write_file", profile, b"new\n", path="a/b.txt", expected_sha256="")
    assert written is not None
    assert written["created"]
    read = await desk.ask("read_file", profile, path="a/b.txt")
    assert read is not None
    assert read["text"] == "new\n"
    desk.clone.item = "wk_2"
    other = await desk.ask("write_file", profile, b"mine", path="a/b.txt")
    assert other is not None
    assert other["code"] == "locked"
    assert (desk.clone.worktree / "a" / "b.txt").read_text() == "new\n"
