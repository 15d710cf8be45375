"""kill -9 at every point of a command's life: at most one start, and an end that is true."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from fixtures.dying import TESTS, is_of_a_shim
from fixtures.eventually import eventually
from fixtures.local_execd import Local, end_all, running, settle
from upright_wire.command import Ending, Outcome, Started, State
from upright_wire.frames import Exec
from upright_wire.plain import to_plain
from upright_wire.spec import Cancel, Confinement, Spec, digest

EXECD: Final = "upright_execd"
POINTS: Final = (
    # of the daemon
    f"{EXECD}.intake:Intake.take:before",
    f"{EXECD}.spool.folder:Folder.make:after",
    f"{EXECD}.spool.folder:Folder.accept:after",
    f"{EXECD}.shims:Shims.start:after",
    f"{EXECD}.intake:Intake._begun:before",
    f"{EXECD}.spool.store:Spool.outcome:after",
    f"{EXECD}.record:note_end:before",
    f"{EXECD}.retiring:Retiring.add:before",
    f"{EXECD}.spool.store:Spool.retire:before",
    f"{EXECD}.spool.store:Spool._put_away:before",
    f"{EXECD}.spool.folder:Folder.strip:after",
    # of a shim
    f"{EXECD}.shim.main:claim:before",
    f"{EXECD}.shim.main:claim:after",
    f"{EXECD}.shim.child:Child._spawn:after",
    f"{EXECD}.shim.main:Shim._start:after",
    f"{EXECD}.shim.owner:Owner.final:before",
    f"{EXECD}.shim.records:Reserved.write:before",
    f"{EXECD}.shim.records:Reserved.write:after",
)


def order_for(root: Path) -> Exec:
    spec = Spec(
        argv=("sh", "-c", "echo x >> count; echo whole"),
        cwd=str(root),
        confinement=Confinement.NONE,
        cancel=Cancel(grace_ms=300),
    )
    return Exec(
        command_id="jb_1",
        channel=1,
        session="se_1",
        lease_epoch=1,
        digest=digest(spec),
        spec=spec,
        ttl_ms=20_000,
    )


def _spawned(argv: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, cwd=TESTS)


@pytest.fixture
async def killed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Exec]:
    """A daemon in another process was given a command, and it or its shim died at the point."""
    point: str = request.param
    await asyncio.to_thread(settle, tmp_path / "home", tmp_path / "work")
    order = order_for(tmp_path / "work")
    argv = [sys.executable, "-m", "fixtures.dying_execd", point, str(tmp_path / "home")]
    process = _spawned([*argv, json.dumps(to_plain(order))])
    try:
        if is_of_a_shim(point):
            await eventually(lambda: [*(tmp_path / "home").glob("state/commands/done/jb_1")])
            process.kill()
        code = await asyncio.to_thread(process.wait, 20)
        assert code == -signal.SIGKILL
        yield order
    finally:
        process.kill()
        process.wait()
        end_all(tmp_path / "home")


@pytest.mark.clause("E5.1", "E5.2")
@pytest.mark.parametrize("killed", POINTS, indirect=True)
async def test_whoever_is_killed_it_starts_at_most_once_and_its_end_is_true(
    killed: Exec, tmp_path: Path
) -> None:
    count = tmp_path / "work/count"
    async with running(tmp_path) as local:
        before = await settled(local)
        ran = count.exists()
        if before is None:
            assert not ran, "what is not held would be sent again"
        elif before.started is not Started.UNKNOWN:
            assert (before.started is Started.YES) is ran
        assert await local.commands.exec(killed) is None
        after = await settled(local)
        assert after is not None
        assert before in {None, after}
        if before is None:
            assert after.ending is Ending.EXITED
    assert not ran or count.read_text() == "x\n"
    if after.ending is Ending.EXITED:
        assert (after.stdout.bytes, count.read_text()) == (6, "x\n")


async def settled(local: Local) -> Outcome | None:
    """Return the end of the command; None: it is not held."""
    if await local.commands.look("jb_1") is None:
        return None
    outcome = (await local.reached("jb_1", State.FINAL)).outcome
    assert outcome is not None
    return outcome


# ------------------------------------------------------------------ the nursery
@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Local]:
    async with running(tmp_path) as local:
        yield local
    end_all(tmp_path / "home")


def parent(pid: int) -> int:
    text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    return int(text[text.rindex(")") + 2 :].split()[1])


async def shim_of(local: Local, command_id: str) -> int:
    await local.start("sleep", "73", command_id=command_id)
    pid = (await local.reached(command_id, State.STARTED)).pid
    assert pid
    return parent(pid)


@pytest.mark.clause("E5.2")
async def test_a_shim_that_is_done_takes_the_next_command(local: Local) -> None:
    async def shim(command_id: str) -> int:
        await local.run("sh", "-c", "echo $PPID", command_id=command_id)
        (line,) = await local.output(command_id)
        assert isinstance(line, bytes)
        return int(line)

    assert len({await shim(f"jb_{n}") for n in range(12)}) <= 2


@pytest.mark.clause("E5.2")
async def test_a_shim_whose_command_left_something_takes_no_other(local: Local) -> None:
    script = "sleep 74 >/dev/null 2>&1 & echo $! $PPID"
    outcome = await local.run("sh", "-c", script)
    (line,) = await local.output()
    assert isinstance(line, bytes)
    pid, shim = (int(word) for word in line.split())
    assert [process.pid for process in outcome.survivors] == [pid]
    await eventually(lambda: not Path(f"/proc/{shim}/environ").exists())
    os.kill(pid, signal.SIGKILL)


async def test_without_its_nursery_a_command_starts_all_the_same(local: Local) -> None:
    shim = await shim_of(local, "jb_1")
    os.kill(parent(shim), signal.SIGKILL)
    for number in range(2, 14):
        outcome = await local.run("true", command_id=f"jb_{number}")
        assert (outcome.ending, outcome.number) == (Ending.EXITED, 0)
    await local.commands.cancel("jb_1")
    assert (await local.final("jb_1")).ending is Ending.CANCELLED


async def test_an_order_that_is_too_long_for_a_warm_shim_starts_a_cold_one(tmp_path: Path) -> None:
    environment = {"PATH": os.defpath, "X": "x" * 99_000}
    async with running(tmp_path, environment=environment) as local:
        outcome = await local.run("sh", "-c", "echo ${#X}; exit 5")
        assert (outcome.number, await local.output()) == (5, [b"99000\n"])


@pytest.mark.clause("E5.2")
async def test_when_the_daemon_goes_idle_shims_go_and_busy_ones_stay(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        busy = await shim_of(local, "jb_1")
        nursery = parent(busy)
        idle = [pid for pid in children(nursery) if pid != busy]
        assert idle
    await eventually(lambda: not any(lives(pid) for pid in idle))
    assert lives(busy)
    await asyncio.to_thread(end_all, tmp_path / "home")
    await eventually(lambda: not lives(busy))


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        if int(text[text.rindex(")") + 2 :].split()[1]) == pid:
            found.append(int(path.parent.name))
    return found


@pytest.fixture
def deaf() -> Iterator[None]:
    """As a shell starts what stands before ``&``, and a careless supervisor anything."""
    ignored = (signal.SIGQUIT, signal.SIGUSR1, signal.SIGTSTP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR2,))
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("deaf")
async def test_a_command_hears_the_signals_that_its_shim_and_its_daemon_do_not_heed(
    tmp_path: Path,
) -> None:
    script = "grep -E 'Sig(Ign|Blk)' /proc/self/status"
    async with running(tmp_path) as local:
        await local.run("sh", "-c", script)
        (text,) = await local.output()
    assert isinstance(text, bytes)
    ordinary = 2**31 - 1  # the two beyond are the C library's own
    assert [int(line.split()[1], 16) & ordinary for line in text.splitlines()] == [0, 0]


async def test_a_command_inherits_no_open_file(local: Local) -> None:
    for number in range(3):
        await local.run("sh", "-c", "ls /proc/self/fd | wc -w", command_id=f"jb_{number}")
        assert await local.output(f"jb_{number}") == [b"4\n"]
