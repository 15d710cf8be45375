"""Commands on this machine: real shims, real processes."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fixtures.eventually import eventually, eventually_awaited
from fixtures.local_execd import Local, end_all, running
from upright_execd.ports import Piece
from upright_execd.spool.store import Spool
from upright_wire.command import Ending, Refusal, Started, State, Stream
from upright_wire.spec import Cancel, Signal, Stdin


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Local]:
    async with running(tmp_path) as local:
        yield local
    end_all(tmp_path / "home")


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.clause("E4.4")
async def test_an_exit_code_is_told_as_it_was(local: Local) -> None:
    outcome = await local.run("sh", "-c", "exit 37")
    assert (outcome.ending, outcome.number, outcome.started) == (Ending.EXITED, 37, Started.YES)


@pytest.mark.clause("E4.4")
async def test_a_signal_is_told_as_it_was(local: Local) -> None:
    outcome = await local.run("sh", "-c", "kill -9 $$")
    assert (outcome.ending, outcome.number) == (Ending.SIGNALED, 9)


@pytest.mark.clause("E4.5")
async def test_bytes_stay_bytes_and_the_streams_apart(local: Local) -> None:
    outcome = await local.run("sh", "-c", r"printf '\000\377\n\r\nx'; printf 'e\200' >&2")
    assert await local.output() == [b"\x00\xff\n\r\nx"]
    assert await local.output(stream=Stream.STDERR) == [b"e\x80"]
    assert outcome.stdout.sha256 == hashlib.sha256(b"\x00\xff\n\r\nx").hexdigest()


@pytest.mark.clause("E4.2")
async def test_argv_is_handed_over_byte_for_byte_without_a_shell(local: Local) -> None:
    odd = ["$HOME", "a b", "*", "ü\u202e", "", "-n", "'\"\n"]
    await local.run("printf", "%s\\0", *odd)
    assert await local.output() == ["\0".join([*odd, ""]).encode()]


@pytest.mark.clause("E4.4")
async def test_a_program_that_is_not_there_never_started(local: Local) -> None:
    outcome = await local.run("no-such-program-anywhere")
    assert (outcome.ending, outcome.number) == (Ending.SPAWN_FAILED, errno.ENOENT)
    assert outcome.started is Started.NO


async def test_a_folder_that_is_not_there_never_started(local: Local) -> None:
    outcome = await local.run("true", cwd=str(local.root / "missing"))
    assert (outcome.ending, outcome.number) == (Ending.SPAWN_FAILED, errno.ENOENT)


async def test_it_runs_in_the_folder_that_was_asked_for(local: Local) -> None:
    inner = local.root / "inner"
    inner.mkdir()
    await local.run("pwd", "-P", cwd=str(inner))
    assert await local.output() == [f"{inner.resolve()}\n".encode()]


@pytest.mark.clause("E4.4")
async def test_a_time_out_ends_it(local: Local) -> None:
    outcome = await local.run("sleep", "60", timeout_ms=50)
    assert (outcome.ending, outcome.started) == (Ending.TIMED_OUT, Started.YES)


@pytest.mark.clause("E6.1")
async def test_a_cancel_lets_it_clean_up(local: Local) -> None:
    script = "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done"
    await local.start("sh", "-c", script, cancel=Cancel(grace_ms=10_000))
    await printed(local, b"up\n")
    await local.commands.cancel("jb_1")
    outcome = await local.final()
    assert outcome.ending is Ending.CANCELLED
    assert await local.output() == [b"up\nbye\n"]


@pytest.mark.clause("E6.1")
async def test_a_cancel_uses_the_signal_of_the_spec(local: Local) -> None:
    script = "trap 'echo int; exit 0' INT; echo up; while :; do sleep 0.01; done"
    cancel = Cancel(signal=Signal.INT, grace_ms=10_000)
    await local.start("sh", "-c", script, cancel=cancel)
    await printed(local, b"up\n")
    await local.commands.cancel("jb_1")
    assert (await local.final()).ending is Ending.CANCELLED
    assert await local.output() == [b"up\nint\n"]


@pytest.mark.clause("E6.1", "E6.3")
async def test_who_ignores_the_signal_is_killed_with_all_descendants(local: Local) -> None:
    script = "trap '' TERM; (setsid sleep 61 & echo $!) ; sleep 62 & echo $!; wait; wait"
    await local.start("sh", "-c", script)
    await eventually_awaited(lambda: lines(local, 2))
    pids = [int(line) for line in await lines(local, 2)]
    await local.commands.cancel("jb_1")
    outcome = await local.final()
    assert (outcome.ending, outcome.survivors) == (Ending.KILLED, ())
    assert all(gone(pid) for pid in pids)


@pytest.mark.clause("E6.3")
async def test_a_daemonised_escapee_is_ended_by_a_cancel(local: Local) -> None:
    script = "(setsid sh -c 'sleep 63 & echo $!; exec sleep 64' &) ; exec sleep 65"
    await local.start("sh", "-c", script)
    await eventually_awaited(lambda: lines(local, 1))
    (escapee,) = [int(line) for line in await lines(local, 1)]
    await local.commands.cancel("jb_1")
    await local.final()
    assert gone(escapee)


async def test_a_stopped_command_hears_the_cancel(local: Local) -> None:
    await local.start("sh", "-c", "kill -STOP $$; sleep 66", cancel=Cancel(grace_ms=10_000))
    await local.commands.cancel("jb_1")
    assert (await local.final()).ending is Ending.CANCELLED


@pytest.mark.clause("E6.2")
async def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_end(local: Local) -> None:
    before = asyncio.get_running_loop().time()
    outcome = await local.run("sh", "-c", "sleep 67 & echo $!; exit 4")
    assert (outcome.ending, outcome.number, outcome.pipe_held) == (Ending.EXITED, 4, True)
    assert asyncio.get_running_loop().time() - before < 3
    (pid,) = [int(line) for line in await lines(local, 1)]
    assert [process.pid for process in outcome.survivors] == [pid]
    os.kill(pid, signal.SIGKILL)


@pytest.mark.clause("E4.3", "E7.4")
async def test_the_same_id_twice_starts_once(local: Local) -> None:
    order = local.order("sh", "-c", "echo x >> count")
    assert [await local.commands.exec(order) for _ in range(3)] == [None] * 3
    await local.final()
    assert await local.commands.exec(order) is None
    await local.commands.final_ack("jb_1")
    assert await local.commands.exec(order) is None
    assert (await local.final()).ending is Ending.EXITED
    assert (local.root / "count").read_text() == "x\n"


@pytest.mark.clause("E4.3", "E7.4")
async def test_when_only_its_receipt_is_left_that_answers(local: Local) -> None:
    order = await local.start("sh", "-c", "echo x >> count")
    await local.final()
    await local.commands.final_ack("jb_1")
    await eventually(lambda: local.daemon.house.spool.is_done("jb_1"))
    assert await local.commands.exec(order) is None
    assert (await local.final()).ending is Ending.EXITED
    assert (local.root / "count").read_text() == "x\n"


@pytest.mark.clause("E4.3")
async def test_an_id_whose_receipt_may_be_gone_is_expired_and_starts_nothing(local: Local) -> None:
    ids = [f"jb_01m8q1k8fv7dttrqhar20{number}atve" for number in range(3)]
    await local.run("touch", "first", command_id=ids[1])
    await local.commands.final_ack(ids[1])
    spool = local.daemon.house.spool
    await eventually(lambda: spool.is_done(ids[1]))
    assert await asyncio.to_thread(spool.prune, datetime.max.replace(tzinfo=UTC)) == 1
    for command_id in ids[:2]:
        old = await local.run("touch", "again", command_id=command_id)
        assert (old.ending, old.started) == (Ending.EXPIRED, Started.UNKNOWN)
    assert not (local.root / "again").exists()
    assert (await local.run("true", command_id=ids[2])).ending is Ending.EXITED
    again = Spool(local.daemon.house.paths.commands, "boot")
    await asyncio.to_thread(again.make)
    assert [again.is_too_old(one) for one in ids] == [True, True, False]


@pytest.mark.clause("E4.3")
async def test_the_same_id_with_another_digest_is_a_conflict(local: Local) -> None:
    await local.run("true")
    other = local.order("false")
    assert await local.commands.exec(other) is Refusal.CONFLICT
    await local.commands.final_ack("jb_1")
    assert await local.commands.exec(other) is Refusal.CONFLICT


@pytest.mark.clause("E4.1")
async def test_an_older_lease_is_refused(local: Local) -> None:
    await local.run("true", lease_epoch=5)
    late = local.order("true", command_id="jb_2", lease_epoch=4)
    assert await local.commands.exec(late) is Refusal.STALE_EPOCH
    assert await local.commands.look("jb_2") is None


@pytest.mark.clause("E6.1", "E7.5")
async def test_a_cancel_that_overtakes_its_command_is_a_fence(local: Local) -> None:
    await local.commands.cancel("jb_1")
    outcome = await local.run("touch", "ran")
    assert (outcome.ending, outcome.started) == (Ending.CANCELLED, Started.NO)
    assert not (local.root / "ran").exists()


async def test_a_cancel_right_behind_its_command_ends_it_one_way_or_the_other(local: Local) -> None:
    for number in range(8):
        command_id = f"jb_{number}"
        await local.commands.exec(local.order("sleep", "68", command_id=command_id))
        await local.commands.cancel(command_id)
        outcome = await local.final(command_id)
        assert outcome.ending is Ending.CANCELLED


@pytest.mark.clause("E4.6")
async def test_input_arrives_whole_before_the_start(local: Local) -> None:
    data = os.urandom(200_000)
    stdin = Stdin(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    await local.commands.exec(local.order("cat", stdin=stdin))
    assert await local.commands.stdin("jb_1", 0, data[:70_000], end=False) == 70_000
    assert await local.commands.stdin("jb_1", 90_000, data[90_000:], end=True) == 70_000
    assert await local.commands.stdin("jb_1", 60_000, data[60_000:], end=True) == 200_000
    await local.final()
    assert await local.output() == [data]


@pytest.mark.clause("E4.6")
async def test_input_that_is_not_what_the_spec_says_starts_nothing(local: Local) -> None:
    stdin = Stdin(bytes=3, sha256=hashlib.sha256(b"yes").hexdigest())
    await local.commands.exec(local.order("touch", "ran", stdin=stdin))
    await local.commands.stdin("jb_1", 0, b"no!", end=True)
    outcome = await local.final()
    assert (outcome.ending, outcome.text) == (Ending.SPAWN_FAILED, "stdin_mismatch")
    assert not (local.root / "ran").exists()


@pytest.mark.clause("E4.1", "E4.4")
async def test_what_waits_too_long_for_its_start_expires(local: Local) -> None:
    stdin = Stdin(bytes=3, sha256=hashlib.sha256(b"yes").hexdigest())
    outcome = await local.run("cat", stdin=stdin, ttl_ms=30)
    assert (outcome.ending, outcome.started) == (Ending.EXPIRED, Started.NO)


@pytest.mark.clause("E5.5")
@pytest.mark.parametrize("total", [999, 8192, 50_000])
async def test_over_the_quota_both_ends_are_kept_and_the_rest_is_counted(
    local: Local, total: int
) -> None:
    quota = 8192
    script = f"import sys; sys.stdout.buffer.write(bytes(i * 7 % 251 for i in range({total})))"
    outcome = await local.run("python3", "-c", script, quota_bytes=quota)
    data = bytes(i * 7 % 251 for i in range(total))
    head, tail = quota - 2 * (quota // 4), quota // 4
    assert outcome.stdout.bytes == total
    assert outcome.stdout.sha256 == hashlib.sha256(data).hexdigest()
    if total <= head + tail:
        assert await local.output() == [data]
    else:
        gap = total - head - tail
        assert await local.output() == [data[:head], gap, data[-tail:]]
        assert [(o.offset, o.count) for o in outcome.stdout.omitted] == [(head, gap)]


@pytest.mark.clause("E5.5")
async def test_a_quota_of_nothing_counts_all_of_it(local: Local) -> None:
    outcome = await local.run("echo", "hello", quota_bytes=0)
    assert (outcome.stdout.bytes, await local.output()) == (6, [6])


@pytest.mark.case("OC/22681")
@pytest.mark.clause("E8.5")
async def test_variables_that_may_not_be_set_are_dropped_and_reported(local: Local) -> None:
    env = (("LANG", "C"), ("LD_PRELOAD", "/evil.so"), ("FOO", "1"))
    script = 'echo "$LANG,$LD_PRELOAD,$FOO,$UPRIGHT_COMMAND_ID"'
    outcome = await local.run("sh", "-c", script, env=env)
    assert outcome.env_dropped == ("FOO", "LD_PRELOAD")
    assert await local.output() == [b"C,,,jb_1\n"]


@pytest.mark.clause("E5.4")
async def test_the_inventory_holds_what_is_not_acknowledged(local: Local) -> None:
    order = await local.start("sh", "-c", "printf abc; exec sleep 69")
    await printed(local, b"abc")
    (held,) = await local.commands.inventory()
    assert (held.digest, held.state, held.stdout) == (order.digest, State.STARTED, 3)
    await local.commands.final_ack("jb_1")
    assert await local.commands.inventory()
    await local.commands.cancel("jb_1")
    await local.final()
    await local.commands.final_ack("jb_1")
    assert await local.commands.inventory() == ()


@pytest.mark.clause("E5.4")
async def test_after_the_acknowledgement_the_receipt_stays_and_the_bytes_go(local: Local) -> None:
    await local.run("echo", "hello")
    await local.commands.final_ack("jb_1")
    assert (await local.final()).stdout.bytes == 6
    piece = await local.commands.read("jb_1", Stream.STDOUT, 2, 100)
    assert piece == Piece(omitted=4, end=True)


async def test_nothing_is_held_under_an_unknown_id(local: Local) -> None:
    assert await local.commands.look("jb_9") is None
    assert await local.commands.stdin("jb_9", 10, b"abc", end=True) == 13


async def test_an_id_that_is_no_file_name_stays_inside_its_folder(local: Local) -> None:
    outcome = await local.run("true", command_id="../../../escape")
    assert outcome.ending is Ending.EXITED
    assert not list(local.root.parent.rglob("escape*"))


@pytest.mark.clause("E4.4")
async def test_the_processor_time_and_the_memory_are_told(local: Local) -> None:
    script = "x = bytearray(50_000_000); sum(i for i in range(300_000))"
    outcome = await local.run("python3", "-c", script)
    assert outcome.cpu_ms
    assert outcome.peak_memory_bytes
    assert outcome.peak_memory_bytes > 50_000_000


async def printed(local: Local, text: bytes) -> None:
    async def look() -> bool:
        return (await local.commands.read("jb_1", Stream.STDOUT, 0, 4096)).data == text

    await eventually_awaited(look)


async def lines(local: Local, count: int) -> list[bytes]:
    data = (await local.commands.read("jb_1", Stream.STDOUT, 0, 4096)).data
    return data.splitlines() if data.count(b"\n") >= count else []
