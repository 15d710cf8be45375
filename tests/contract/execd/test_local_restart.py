"""What happens to commands when the daemon, its shims or the machine die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.eventually import eventually, eventually_awaited
from fixtures.execd_process import READY
from fixtures.local_execd import Local, end_all, running, settle
from upright_execd.daemon import alone, holder
from upright_execd.errors import AlreadyRunningError
from upright_execd.paths import make_private, paths_in
from upright_execd.pinned import Pinned, save
from upright_execd.spool.folder import Folder
from upright_wire.command import Ending, Refusal, Started, State, Stream
from upright_wire.frames import Exec
from upright_wire.plain import to_plain
from upright_wire.spec import Cancel, Confinement, Spec, digest

TESTS = Path(__file__).parents[2]
TICKS = "i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i; sleep 0.01; done; exit 6"


@pytest.fixture(autouse=True)
def no_leftovers(tmp_path: Path) -> Iterator[None]:
    """End what a failed test leaves behind."""
    yield
    end_all(tmp_path / "home")


def folder(tmp_path: Path, command_id: str = "jb_1") -> Path:
    return tmp_path / "home/state/commands/open" / command_id


def shim_of(tmp_path: Path) -> int:
    """Return the pid of the shim: the parent of the command."""
    started = (folder(tmp_path) / "running").read_text(encoding="ascii")
    pid = int(dict(line.split("=") for line in started.splitlines())["pid"])
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(dict(line.split(":\t", 1) for line in status.splitlines())["PPid"])


def counted(data: bytes) -> bool:
    numbers = data.split()
    return numbers == [b"%d" % (n + 1) for n in range(len(numbers))]


async def grown(local: Local, beyond: int = 0) -> int:
    async def look() -> int | None:
        (held,) = await local.commands.inventory()
        return held.stdout if held.stdout > beyond else None

    return await eventually_awaited(look)


@pytest.mark.clause("E5.2", "E7.6")
async def test_a_new_daemon_takes_up_a_command_that_runs(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        order = await local.start("sh", "-c", TICKS)
        before = await local.reached("jb_1", State.STARTED)
        seen = await grown(local)
    async with running(tmp_path) as local:
        after = await local.reached("jb_1", State.STARTED)
        assert after.pid == before.pid
        assert await local.commands.exec(order) is None
        await grown(local, seen)
        (local.root / "stop").touch()
        outcome = await local.final()
        assert (outcome.ending, outcome.number) == (Ending.EXITED, 6)
        (data,) = await local.output()
        assert isinstance(data, bytes)
        assert counted(data)


@pytest.mark.clause("E5.2", "E7.6")
async def test_a_command_that_ended_without_a_daemon_is_told_whole(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        await local.start("sh", "-c", TICKS)
        await grown(local)
    (tmp_path / "work/stop").touch()
    await eventually((folder(tmp_path) / "exit").exists)
    async with running(tmp_path) as local:
        outcome = await local.final()
        assert (outcome.ending, outcome.number) == (Ending.EXITED, 6)
        (data,) = await local.output()
        assert isinstance(data, bytes)
        assert len(data) == outcome.stdout.bytes


@pytest.mark.clause("E6.1")
async def test_a_cancel_reaches_a_command_of_an_earlier_daemon(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        await local.start("sleep", "70")
    async with running(tmp_path) as local:
        await local.commands.cancel("jb_1")
        assert (await local.final()).ending is Ending.CANCELLED


@pytest.fixture
def killed_daemon(tmp_path: Path) -> Exec:
    """A daemon in another process took up a command, and was killed while it ran."""
    settle(tmp_path / "home", tmp_path / "work")
    script = f"echo x >> count; {TICKS}"
    spec = Spec(
        argv=("sh", "-c", script),
        cwd=str(tmp_path / "work"),
        confinement=Confinement.NONE,
        cancel=Cancel(grace_ms=300),
    )
    order = Exec(
        command_id="jb_1",
        channel=1,
        session="se_1",
        lease_epoch=3,
        digest=digest(spec),
        spec=spec,
        ttl_ms=20_000,
    )
    program = [sys.executable, "-m", "fixtures.execd_process", str(tmp_path / "home")]
    process = subprocess.Popen([*program, json.dumps(to_plain(order))], cwd=TESTS)
    asyncio.run(eventually((tmp_path / "home" / READY).exists))
    asyncio.run(eventually((folder(tmp_path) / "running").exists))
    process.kill()
    process.wait()
    return order


@pytest.mark.clause("E5.2", "E7.6")
async def test_a_killed_daemon_costs_neither_a_byte_nor_a_second_start(
    killed_daemon: Exec, tmp_path: Path
) -> None:
    before = asyncio.get_running_loop().time()
    async with running(tmp_path) as local:
        await local.reached("jb_1", State.STARTED)
        assert asyncio.get_running_loop().time() - before < 2
        assert await local.commands.exec(killed_daemon) is None
        late = local.order("true", command_id="jb_2", lease_epoch=2)
        assert await local.commands.exec(late) is Refusal.STALE_EPOCH
        (local.root / "stop").touch()
        assert (await local.final()).number == 6
        (data,) = await local.output()
        assert isinstance(data, bytes)
        assert counted(data)
        assert (local.root / "count").read_text() == "x\n"


@pytest.mark.clause("E7.7")
async def test_a_killed_shim_is_a_loss_with_all_that_was_written(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        await local.start("sh", "-c", "echo before; exec sleep 71")
        pid = (await local.reached("jb_1", State.STARTED)).pid
        await grown(local)
        os.kill(shim_of(tmp_path), signal.SIGKILL)
        outcome = await local.final()
        assert (outcome.ending, outcome.text) == (Ending.LOST, "shim_died")
        assert outcome.started is Started.YES
        assert await local.output() == [b"before\n"]
        assert pid
        await eventually(lambda: not Path(f"/proc/{pid}").exists() or is_zombie(pid))


def is_zombie(pid: int) -> bool:
    return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")


@pytest.mark.clause("E7.7")
async def test_a_shim_that_is_killed_while_no_daemon_runs_is_a_loss(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        order = await local.start("sleep", "72")
    os.kill(shim_of(tmp_path), signal.SIGKILL)
    async with running(tmp_path) as local:
        assert (await local.final()).ending is Ending.LOST
        assert await local.commands.exec(order) is None
        assert (await local.final()).ending is Ending.LOST


@pytest.mark.clause("E5.3", "E7.8")
@pytest.mark.parametrize(
    ("kept", "started"),
    [
        ({"started", "running"}, Started.YES),
        ({"started"}, Started.UNKNOWN),
        (set(), Started.UNKNOWN),
    ],
)
async def test_after_a_power_cut_a_missing_mark_means_unknown(
    tmp_path: Path, kept: set[str], started: Started
) -> None:
    async with running(tmp_path) as local:
        await local.run("true")
    path = folder(tmp_path)
    for name in {"started", "running", "exit"} - kept:
        (path / name).unlink()
    spec = json.loads((path / "spec").read_text())
    (path / "spec").write_text(json.dumps(spec | {"os_boot_id": "an earlier one"}) + "\n")
    async with running(tmp_path) as local:
        outcome = await local.final()
        assert (outcome.ending, outcome.text) == (Ending.LOST, "host_reboot")
        assert outcome.started is started


@pytest.mark.clause("E7.2")
async def test_a_command_that_no_shim_ever_took_is_not_held_and_starts_when_it_comes_again(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as local:
        await local.run("touch", "ran")
        (local.root / "ran").unlink()
        await eventually(lambda: not Folder(folder(tmp_path)).has_shim())
    for name in ("started", "running", "exit"):
        (folder(tmp_path) / name).unlink()
    async with running(tmp_path) as local:
        assert await local.commands.inventory() == ()
        assert (await local.run("touch", "ran")).ending is Ending.EXITED
        assert (local.root / "ran").exists()


@pytest.mark.clause("E7.8")
async def test_a_final_record_survives_a_power_cut_only_with_its_output(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        await local.run("echo", "whole")
        await local.run("echo", "torn", command_id="jb_2")
    for name in ("jb_1", "jb_2"):
        path = folder(tmp_path, name) / "spec"
        spec = json.loads(path.read_text()) | {"os_boot_id": "earlier"}
        path.write_text(json.dumps(spec) + "\n")
    os.truncate(folder(tmp_path, "jb_2") / "out", 2)
    async with running(tmp_path) as local:
        assert (await local.final("jb_1")).ending is Ending.EXITED
        assert (await local.final("jb_2")).text == "host_reboot"
        assert await local.output("jb_2") == [b"to"]


@pytest.mark.clause("E6.1")
async def test_a_fence_holds_over_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        await local.commands.cancel("jb_1")
    async with running(tmp_path) as local:
        assert [held.state for held in await local.commands.inventory()] == [State.FINAL]
        assert (await local.run("touch", "ran")).ending is Ending.CANCELLED
        assert not (local.root / "ran").exists()


@pytest.mark.clause("E5.1")
async def test_what_was_never_accepted_is_swept_away(tmp_path: Path) -> None:
    path = folder(tmp_path)
    path.mkdir(parents=True)
    (path / "stdin").write_text("half")
    async with running(tmp_path) as local:
        assert await local.commands.inventory() == ()
    assert not path.exists()


@pytest.mark.clause("E5.4", "E7.3")
async def test_output_is_read_on_from_an_offset_without_gap_or_repeat(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        await local.start("sh", "-c", TICKS)
        await grown(local)
        first = await local.commands.read("jb_1", Stream.STDOUT, 0, 65_536)
    async with running(tmp_path) as local:
        (local.root / "stop").touch()
        await local.final()
        rest = await local.commands.read("jb_1", Stream.STDOUT, len(first.data), 1_000_000)
        assert [first.data + rest.data] == await local.output()


@pytest.mark.clause("E7.9")
def test_a_second_daemon_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    paths = paths_in(tmp_path)
    make_private(paths.state)
    with alone(paths):
        assert holder(paths.lock) == os.getpid()
        with (
            pytest.raises(AlreadyRunningError, match=f"process {os.getpid()}") as caught,
            alone(paths),
        ):
            pass
        assert caught.value.exit_code == 75
    assert holder(paths.lock) is None


@pytest.mark.clause("E1.5", "E8.7")
async def test_a_pairing_that_its_owner_ends_ends_what_still_runs(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        await local.start("sleep", "88", cancel=Cancel(grace_ms=300))
        home = local.daemon.house.paths
    assert await asyncio.to_thread(Folder(folder(tmp_path)).has_shim)
    pinned = Pinned(
        url="ws://127.0.0.1:9/v1/device",
        host="127.0.0.1:9",
        hub_id="hb_1",
        hub_key=bytes(32),
        device_id="dv_1",
        key_file=str(tmp_path / "key"),
    )
    await asyncio.to_thread(save, home.pairing, pinned)
    program = [sys.executable, "-m", "upright_execd", "--home", str(home.config), "revoke"]
    done = await asyncio.to_thread(subprocess.run, program, capture_output=True, text=True)
    assert (done.returncode, "are being ended: 1" in done.stdout) == (0, True), done.stderr
    await eventually((folder(tmp_path) / "exit").exists)
    marks = await asyncio.to_thread(Folder(folder(tmp_path)).marks)
    assert marks.exit is not None
    assert dict(marks.exit)["ending"] == "cancelled"
