"""Cases from the field (42-field-cases.md, *Daemon and devices*), with real processes."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from fixtures.eventually import eventually, eventually_awaited
from fixtures.local_execd import Local, end_all, running
from upright_execd.clock import SystemClock
from upright_execd.environment import FOLDER_VARIABLE
from upright_execd.ownerline import ask
from upright_wire.command import Ending, Outcome, Started, State, Stream
from upright_wire.spec import Cancel

MIB: Final = 1024 * 1024
POUR: Final = (
    "import sys\n"
    "block = bytes(range(256)) * 256\n"
    "for n in range({blocks}): sys.stdout.buffer.write(n.to_bytes(4, 'big') + block[4:])\n"
)


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Local]:
    async with running(tmp_path) as local:
        yield local
    end_all(tmp_path / "home")


def poured(blocks: int) -> bytes:
    block = bytes(range(256)) * 256
    return b"".join(n.to_bytes(4, "big") + block[4:] for n in range(blocks))


def marked(local: Local, command_id: str = "jb_1") -> list[int]:
    """Return every living process of the command, wherever it went."""
    folder = local.daemon.house.spool.folder(command_id).path
    mark, found = f"{FOLDER_VARIABLE}={folder}".encode(), []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def printed(local: Local, text: bytes) -> None:
    async def look() -> bool:
        return (await local.commands.read("jb_1", Stream.STDOUT, 0, 4096)).data.startswith(text)

    await eventually_awaited(look)


# ------------------------------------------------------------------ output
@pytest.mark.case("OC/128967")
@pytest.mark.clause("E5.5")
async def test_of_ten_megabytes_the_first_and_the_last_are_kept_and_the_rest_is_counted(
    local: Local,
) -> None:
    blocks, quota = 160, 4 * MIB
    outcome = await local.run("python3", "-c", POUR.format(blocks=blocks), quota_bytes=quota)
    data = poured(blocks)
    first, gap, last = await local.output()
    assert isinstance(first, bytes)
    assert isinstance(gap, int)
    assert isinstance(last, bytes)
    assert (len(first), len(last)) == (quota - 2 * MIB, MIB)
    assert first == data[: len(first)]
    assert last == data[-MIB:]
    assert len(first) + gap + len(last) == len(data) == outcome.stdout.bytes
    assert [(one.offset, one.count) for one in outcome.stdout.omitted] == [(len(first), gap)]
    assert outcome.stdout.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.case("OC/113219")
@pytest.mark.clause("E4.5")
async def test_bytes_of_any_code_page_arrive_as_they_were(local: Local) -> None:
    wanted = "页".encode("gbk") + "é\n".encode() + bytes(range(256))
    (local.root / "bytes").write_bytes(wanted)
    await local.run("cat", "bytes")
    assert await local.output() == [wanted]


@pytest.mark.case("BK/1105")
@pytest.mark.clause("E5.5")
async def test_a_disk_below_its_floor_refuses_before_the_start_and_takes_up_when_it_is_freed(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, ('mode = "allow"', "spool_quota_bytes = 4096")) as local:
        outcome = await local.run("touch", "ran")
        assert (outcome.ending, outcome.text) == (Ending.DENIED, "spool_full")
        assert outcome.started is Started.NO
        assert not (local.root / "ran").exists()
        settings = local.daemon.house.paths.settings
        settings.write_text('mode = "allow"', encoding="ascii")
        await asyncio.to_thread(ask, local.daemon.house.paths, {"op": "reload"})
        quota = 4096
        await eventually(lambda: local.daemon.house.rules().settings.spool_quota_bytes > quota)
        assert (await local.run("touch", "ran", command_id="jb_2")).ending is Ending.EXITED


# ------------------------------------------------------------------ ending
@pytest.mark.case("OC/18619")
@pytest.mark.clause("E6.1")
@pytest.mark.parametrize("grace_ms", [300, 1200])
async def test_who_ignores_the_signal_is_killed_at_the_end_of_its_grace(
    local: Local, grace_ms: int
) -> None:
    script = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    await local.start("sh", "-c", script, cancel=Cancel(grace_ms=grace_ms))
    await printed(local, b"up\n")
    loop = asyncio.get_running_loop()
    before = loop.time()
    await local.commands.cancel("jb_1")
    outcome = await local.final()
    assert outcome.ending is Ending.KILLED
    assert grace_ms / 1000 <= loop.time() - before <= grace_ms / 1000 + 2.5


@pytest.mark.case("GHA/4601")
@pytest.mark.clause("E6.3")
async def test_a_fork_storm_is_swept_to_the_last_process(local: Local) -> None:
    script = "trap '' TERM; echo up; while :; do (trap '' TERM; setsid sleep 81 &); done"
    await local.start("bash", "-c", f"ulimit -u 4000; {script}", cancel=Cancel(grace_ms=200))
    await printed(local, b"up\n")
    await eventually(lambda: len(marked(local)) > 20)
    await local.commands.cancel("jb_1")
    outcome = await local.final()
    assert outcome.ending in {Ending.KILLED, Ending.CANCELLED}
    assert (outcome.survivors, marked(local)) == ((), [])


@pytest.mark.clause("E6.3")
async def test_a_tree_whose_middle_is_gone_is_ended_whole(local: Local) -> None:
    script = "sh -c 'sh -c \"setsid sleep 82 & sleep 83 & echo up\"; exit 0'; exec sleep 84"
    await local.start("sh", "-c", script)
    await printed(local, b"up\n")
    assert len(marked(local)) >= 3
    await local.commands.cancel("jb_1")
    assert (await local.final()).ending is Ending.CANCELLED
    assert marked(local) == []


@pytest.mark.clause("E6.3")
async def test_a_double_fork_into_a_session_of_its_own_does_not_escape(local: Local) -> None:
    script = (
        "import os, sys, time\n"
        "if os.fork(): time.sleep(85)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "os.closerange(0, 64)\n"
        "os.environ.clear()\n"
        "open('daemon', 'w').write(str(os.getpid()))\n"
        "time.sleep(86)\n"
    )
    await local.start(sys.executable, "-c", script)
    path = local.root / "daemon"
    pid = int(await eventually(lambda: path.read_text() if path.exists() else ""))
    await local.commands.cancel("jb_1")
    await local.final()
    assert not lives(pid)


@pytest.mark.clause("E6.1")
async def test_a_cancel_twice_is_a_cancel_once(local: Local) -> None:
    script = "trap 'echo term' TERM; echo up; while :; do sleep 0.05; done"
    await local.start("sh", "-c", script, cancel=Cancel(grace_ms=600))
    await printed(local, b"up\n")
    for _ in range(5):
        await local.commands.cancel("jb_1")
    assert (await local.final()).ending is Ending.KILLED
    assert await local.output() == [b"up\nterm\n"]
    await local.commands.cancel("jb_1")
    assert (await local.final()).ending is Ending.KILLED


@pytest.mark.clause("E6.1")
async def test_who_wins_the_race_against_a_cancel_keeps_its_exit_code(local: Local) -> None:
    for number in range(20):
        command_id = f"jb_{number}"
        await local.start("sh", "-c", "exit 7", command_id=command_id)
        await local.commands.cancel(command_id)
        outcome = await local.final(command_id)
        assert (outcome.ending, outcome.number) in {
            (Ending.EXITED, 7),
            (Ending.CANCELLED, None),
        }


@pytest.mark.case("BK/2202")
@pytest.mark.clause("E6.2")
async def test_a_background_process_does_not_hold_the_end(local: Local) -> None:
    loop = asyncio.get_running_loop()
    before = loop.time()
    outcome = await local.run("sh", "-c", "sleep 87 & exit 3")
    assert (outcome.ending, outcome.number, outcome.pipe_held) == (Ending.EXITED, 3, True)
    assert loop.time() - before <= 3
    (left,) = outcome.survivors
    os.kill(left.pid, 9)


# ------------------------------------------------------------------ clocks
@pytest.mark.case("OC/24455")
@pytest.mark.clause("E2.2")
@pytest.mark.parametrize("days", [-1, 1])
async def test_a_clock_that_is_a_day_off_changes_no_deadline_and_loses_no_receipt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    async with running(tmp_path) as local:
        await local.run("true", command_id="jb_0")
        await local.commands.final_ack("jb_0")
        done = tmp_path / "home/state/commands/done/jb_0"
        await eventually(done.exists)
    shifted = SystemClock().now() + timedelta(days=days)
    monkeypatch.setattr(SystemClock, "now", lambda _clock: shifted)
    async with running(tmp_path) as local:
        assert (await local.run("true")).ending is Ending.EXITED
        timed_out = await local.run("sleep", "88", command_id="jb_2", timeout_ms=200)
        assert timed_out.ending is Ending.TIMED_OUT
        assert timed_out.elapsed_ms < 5_000
        assert await local.commands.look("jb_0") is not None


# ------------------------------------------------------------------ restarts
@pytest.mark.clause("E4.3", "E7.11")
async def test_receipts_answer_a_hub_that_was_restored_from_a_backup(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        order = local.order("sh", "-c", "echo x >> count")
        assert await local.commands.exec(order) is None
        first: Outcome = await local.final()
        await local.commands.final_ack("jb_1")
        await eventually((tmp_path / "home/state/commands/done/jb_1").exists)
    async with running(tmp_path) as local:
        assert await local.commands.exec(order) is None
        seen = await local.reached("jb_1", State.FINAL)
        assert seen.outcome == first
        assert (local.root / "count").read_text(encoding="ascii") == "x\n"


@pytest.mark.clause("E7.11")
async def test_what_nobody_asks_for_any_more_goes_on_and_is_shown(tmp_path: Path) -> None:
    async with running(tmp_path) as local:
        await local.start("sleep", "89")
    async with running(tmp_path) as local:
        assert [held.command_id for held in await local.commands.inventory()] == ["jb_1"]
        assert (await local.reached("jb_1", State.STARTED)).outcome is None
        await local.commands.cancel("jb_1")
        assert (await local.final()).ending is Ending.CANCELLED


# ------------------------------------------------------------------ the cost of a start
@pytest.mark.case("UV/41")
@pytest.mark.skipif(sys.platform != "linux", reason="the nursery is Linux's")
async def test_a_command_is_forked_from_a_small_process_however_large_the_daemon_is(
    local: Local,
) -> None:
    """What is forked is copied by its page tables: this process stands for a daemon that grew."""
    ballast = await asyncio.to_thread(lambda: bytearray(os.urandom(MIB)) * 192)
    say = "import os; print(os.getppid(), flush=True)"
    assert (await local.run(sys.executable, "-c", say)).ending is Ending.EXITED
    await local.start(
        sys.executable, "-c", f"{say}\nimport time; time.sleep(60)", command_id="jb_2"
    )
    (shim,) = {_parent(pid) for pid in marked(local, "jb_2")} - set(marked(local, "jb_2"))
    line = [shim, _parent(shim)]
    assert os.getpid() not in line[:1]
    assert max(_resident(pid) for pid in line if pid != os.getpid()) < 64 * MIB < len(ballast)
    assert _resident(os.getpid()) > len(ballast)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
