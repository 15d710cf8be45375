"""The profile ``workspace``: a confined command changes nothing outside, whatever it tries."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from fixtures.eventually import eventually
from fixtures.local_execd import Local, end_all, running
from fixtures.require import skip_or_fail
from upright_execd.confinement import enforceable
from upright_wire.command import Ending, Outcome
from upright_wire.spec import Confinement

WORKSPACE: Final = Confinement.WORKSPACE


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Local]:
    if WORKSPACE not in await asyncio.to_thread(enforceable):
        skip_or_fail("landlock", "kernel: Landlock ABI 3 (Linux 6.2)")
    async with running(tmp_path) as local:
        yield local
    end_all(tmp_path / "home")


async def shell(local: Local, script: str, command_id: str = "jb_1") -> Outcome:
    return await local.run("sh", "-c", script, command_id=command_id, confinement=WORKSPACE)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def spawn(*argv: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv)


def git(folder: Path, *argv: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    program = shutil.which("git")
    assert program
    subprocess.run([program, "-C", str(folder), *identity, *argv], check=True)


@pytest.mark.clause("E8.6")
@pytest.mark.parametrize("profile", [WORKSPACE, Confinement.READ_ONLY])
async def test_what_makes_this_machine_what_it_is_can_not_be_read(
    local: Local, tmp_path: Path, profile: Confinement
) -> None:
    own = tmp_path / "home" / "device.key"
    own.write_text("the private half", encoding="ascii")
    beside = tmp_path / "beside"
    beside.write_text("anybody's", encoding="ascii")
    first = await local.run("true", command_id="jb_0", confinement=profile)
    assert first.number == 0
    script = (
        f"cat {beside} && cd {tmp_path}/home && test -r . && ls && "
        f"! cat device.key && ! cat execd.toml && ! cat ../home/state/audit.jsonl"
        " && ! cat state/commands/jb_0/spec* && ! ln device.key copy"
        " && ! cat /proc/self/cwd/device.key"
    )
    outcome = await local.run("sh", "-c", script, confinement=profile)
    said = b"".join(part for part in await local.output() if isinstance(part, bytes))
    assert outcome.number == 0
    assert b"anybody's" in said
    assert b"the private half" not in said


@pytest.mark.clause("E8.6")
async def test_inside_it_may_do_what_it_wants(local: Local) -> None:
    script = (
        "mkdir a && echo x > a/f && mv a/f f && ln -s f l && rm -r a && : > f && cat /etc/passwd"
    )
    assert (await shell(local, script)).number == 0
    assert (local.root / "l").is_symlink()


@pytest.mark.case("daemon/persistence")
@pytest.mark.clause("E8.6")
@pytest.mark.parametrize(
    "script",
    [
        "echo x > ../outside",
        "echo x >> ../file",
        ": > ../file",
        "truncate -s 0 ../file",
        "rm ../file",
        "mkdir ../folder",
        "ln -s x ../link",
        "mv ../file stolen",
        "ln ../file hard",
        "mkfifo ../fifo",
        "ln -s ../file link; echo x > link",
        "echo x > ../home/execd.toml",
        "(setsid sh -c 'echo x > ../outside') & wait $!",
    ],
)
async def test_outside_it_changes_nothing(local: Local, tmp_path: Path, script: str) -> None:
    (tmp_path / "file").write_text("whole", encoding="ascii")
    settings = (tmp_path / "home/execd.toml").read_text(encoding="ascii")
    before = names(tmp_path)
    outcome = await shell(local, script)
    assert (outcome.ending, outcome.number == 0) == (Ending.EXITED, False)
    added = {"work.worktrees"}  # made for it by the daemon
    assert [name for name in names(tmp_path) if name not in added] == before
    assert (tmp_path / "file").read_text(encoding="ascii") == "whole"
    assert (tmp_path / "home/execd.toml").read_text(encoding="ascii") == settings


async def test_its_temporary_files_are_its_own_and_go_with_the_spool(local: Local) -> None:
    assert (await shell(local, 'f=$(mktemp) && echo x > "$f" && echo "$f"')).number == 0
    (path,) = await local.output()
    assert isinstance(path, bytes)
    folder = Path(path.decode().strip()).parent
    assert names(folder)
    await local.commands.final_ack("jb_1")
    done = folder.parents[2] / "done/jb_1"
    await eventually(done.exists)
    assert folder.name not in names(done)


async def test_a_worktree_is_made_and_committed_to(local: Local) -> None:
    await asyncio.to_thread(git, local.root, "init", "-q")
    await asyncio.to_thread(git, local.root, "commit", "-q", "--allow-empty", "-m", "first")
    add = await local.run(
        "git", "worktree", "add", "-q", "../work.worktrees/fix", "-b", "fix", confinement=WORKSPACE
    )
    assert add.number == 0
    tree = local.root.with_name("work.worktrees") / "fix"
    script = (
        "echo x > f && git add f && git -c user.name=n -c user.email=e@example.org commit -qm m"
    )
    outcome = await local.run(
        "sh", "-c", script, cwd=str(tree), command_id="jb_2", confinement=WORKSPACE
    )
    assert outcome.number == 0


@pytest.mark.clause("E8.6")
async def test_it_can_signal_nobody_outside(local: Local) -> None:
    other = spawn("sleep", "76")
    outcome = await shell(local, f"kill -9 {other.pid}")
    assert outcome.number != 0
    assert other.poll() is None
    other.kill()
    other.wait()


async def test_it_is_still_ended_by_a_cancel(local: Local) -> None:
    await local.start("sleep", "77", confinement=WORKSPACE)
    await local.commands.cancel("jb_1")
    assert (await local.final()).ending is Ending.CANCELLED


@pytest.mark.clause("E8.2")
async def test_worktrees_that_became_a_link_start_nothing(local: Local, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    local.root.with_name("work.worktrees").symlink_to(tmp_path / "elsewhere")
    outcome = await shell(local, "echo x > ../work.worktrees/f")
    assert outcome.ending is Ending.SPAWN_FAILED
    assert names(tmp_path / "elsewhere") == []
