"""execd as a person starts it, against a hub's real door."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures.eventually import eventually
from fixtures.hub_and_execd import Execd, Hub, execd, serving_hub
from fixtures.shaper import CHUNK, Shaper
from upright_wire.command import Ending, Started, State, Stream
from upright_wire.spec import Stdin

COUNT = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done"
COUNTED = b"".join(b"line %d\n" % n for n in range(1, 20_001))
ENDLESS = "i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i; sleep 0.01; done; exit 6"

RUNS = 3
LAST = 200_000


@dataclass
class Pair:
    hub: Hub
    execd: Execd


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    """A hub and an execd that are paired; the daemon doesn't run yet."""
    async with serving_hub() as hub, execd(tmp_path) as program:
        await program.pair(hub)
        yield Pair(hub=hub, execd=program)


def is_count(data: bytes) -> bool:
    numbers = data.split()
    return numbers == [b"%d" % (n + 1) for n in range(len(numbers))]


async def more_output(hub: Hub) -> None:
    seen = len(hub.output())
    await hub.dispatcher.until(lambda: len(hub.output()) > seen)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.clause("E1.2")
async def test_a_paired_machine_runs_a_command_and_sends_every_byte(pair: Pair) -> None:
    await pair.execd.run(pair.hub)
    script = r"printf 'out\000\377'; printf err >&2; exit 3"
    await pair.hub.command("sh", "-c", script, cwd=pair.execd.root)
    outcome = await pair.hub.final()
    assert (outcome.ending, outcome.number) == (Ending.EXITED, 3)
    assert pair.hub.output() == b"out\x00\xff"
    assert pair.hub.output(stream=Stream.STDERR) == b"err"
    assert [row.path for row in pair.hub.dispatcher.workspaces] == [str(pair.execd.root)]
    _, out, _ = await pair.execd.call("status", "--json")
    assert json.loads(out)["link"] == "online"


@pytest.mark.clause("E4.6")
async def test_input_of_many_frames_arrives_whole(pair: Pair) -> None:
    await pair.execd.run(pair.hub)
    data = os.urandom(3_000_000)
    sha256 = hashlib.sha256(data).hexdigest()
    pair.hub.dispatcher.stdin["jb_1"] = data
    stdin = Stdin(bytes=len(data), sha256=sha256)
    await pair.hub.command("sha256sum", cwd=pair.execd.root, stdin=stdin)
    await pair.hub.final()
    assert pair.hub.output() == f"{sha256}  -\n".encode()


@pytest.mark.clause("E5.5")
async def test_output_over_the_quota_comes_as_beginning_gap_and_end(pair: Pair) -> None:
    await pair.execd.run(pair.hub)
    quota, data = 64 * 1024, COUNTED
    await pair.hub.command("sh", "-c", COUNT, cwd=pair.execd.root, quota_bytes=quota)
    outcome = await pair.hub.final()
    head, tail = quota // 2, quota // 4
    gap = len(data) - head - tail
    assert pair.hub.dispatcher.omitted == [("jb_1", Stream.STDOUT, head, gap)]
    assert pair.hub.output() == data[:head] + data[-tail:]
    assert outcome.stdout.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.clause("E7.3")
async def test_a_network_cut_in_mid_output_costs_no_byte(pair: Pair) -> None:
    await pair.execd.run(pair.hub)
    await pair.hub.command("sh", "-c", ENDLESS, cwd=pair.execd.root)
    for _ in range(3):
        await more_output(pair.hub)
        pair.hub.cut()
        await pair.hub.linked()
    (pair.execd.root / "stop").touch()
    outcome = await pair.hub.final()
    assert outcome.number == 6
    assert is_count(pair.hub.output())
    assert hashlib.sha256(pair.hub.output()).hexdigest() == outcome.stdout.sha256


@pytest.mark.clause("E4.4", "E5.4")
@pytest.mark.case("K8S/124571")
async def test_over_a_late_slow_and_lossy_link_the_last_line_is_there(tmp_path: Path) -> None:
    shaper = Shaper(0, delay_s=0.025, bytes_per_s=5e6, late_every=100)
    async with serving_hub() as hub, shaper.running(), execd(tmp_path) as program:
        shaper.target, hub.port = hub.port, shaper.port
        hub.hosts.add(f"127.0.0.1:{shaper.port}")
        await program.pair(hub)
        await program.run(hub)
        for run in range(RUNS):
            command_id = f"jb_{run}"
            await hub.command("seq", "1", str(LAST), cwd=program.root, command_id=command_id)
            outcome = await hub.final(command_id)
            said = hub.output(command_id)
            assert (outcome.ending, outcome.number) == (Ending.EXITED, 0)
            assert said.endswith(b"\n%d\n" % LAST)
            assert hashlib.sha256(said).hexdigest() == outcome.stdout.sha256
        assert shaper.chunks > RUNS * LAST * 6 // CHUNK


@pytest.mark.clause("E7.6")
async def test_a_killed_daemon_comes_back_to_its_command(pair: Pair) -> None:
    process = await pair.execd.run(pair.hub)
    script = f"echo x >> count; {ENDLESS}"
    await pair.hub.command("sh", "-c", script, cwd=pair.execd.root)
    await pair.hub.dispatcher.until(pair.hub.output)
    process.kill()
    await process.wait()
    await pair.execd.run(pair.hub)
    await more_output(pair.hub)
    (pair.execd.root / "stop").touch()
    outcome = await pair.hub.final()
    assert outcome.number == 6
    assert is_count(pair.hub.output())
    assert hashlib.sha256(pair.hub.output()).hexdigest() == outcome.stdout.sha256
    assert (pair.execd.root / "count").read_text(encoding="ascii") == "x\n"


async def test_sigterm_stops_the_daemon_and_leaves_its_commands(pair: Pair) -> None:
    process = await pair.execd.run(pair.hub)
    await pair.hub.command("sh", "-c", ENDLESS, cwd=pair.execd.root)
    await pair.hub.dispatcher.until(pair.hub.output)
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(10):
        assert await process.wait() == 0
    (pair.execd.root / "stop").touch()
    await eventually((pair.execd.home / "state/commands/open/jb_1/exit").exists)
    await pair.execd.run(pair.hub)
    assert (await pair.hub.final()).number == 6
    assert is_count(pair.hub.output())


@pytest.mark.clause("E6.1")
async def test_a_cancel_goes_all_the_way(pair: Pair) -> None:
    await pair.execd.run(pair.hub)
    await pair.hub.command("sleep", "73", cwd=pair.execd.root)
    states = pair.hub.dispatcher.states
    await pair.hub.dispatcher.until(lambda: [s for s in states if s.state is State.STARTED])
    assert pair.hub.dispatcher.link is not None
    pair.hub.dispatcher.link.send_cancel("jb_1")
    assert (await pair.hub.final()).ending is Ending.CANCELLED


@pytest.mark.clause("E5.4")
async def test_after_the_end_is_stored_the_spool_is_gone(pair: Pair) -> None:
    await pair.execd.run(pair.hub)
    await pair.hub.command("echo", "hello", cwd=pair.execd.root)
    await pair.hub.final()
    done = pair.execd.home / "state/commands/done/jb_1"
    await eventually(done.exists)
    assert names(done) == ["receipt"]


@pytest.mark.clause("E1.5", "E7.10")
async def test_a_revoked_machine_ends_its_commands_and_forgets_its_key(pair: Pair) -> None:
    process = await pair.execd.run(pair.hub)
    await pair.hub.command("sleep", "74", cwd=pair.execd.root)
    states = pair.hub.dispatcher.states
    await pair.hub.dispatcher.until(lambda: [s for s in states if s.pid])
    (pid,) = {state.pid for state in states if state.pid}
    link = pair.hub.dispatcher.link
    assert link is not None
    pair.hub.world.roster.revoke(link.device_id)
    pair.hub.world.links.revoke(link.device_id)
    async with asyncio.timeout(15):
        assert await process.wait() == 4
    assert process.stderr is not None
    assert b"revoked" in (await process.stderr.read()).splitlines()[-1]
    _, log, _ = await pair.execd.call("log", "--jsonl")
    rows = [json.loads(line) for line in log.splitlines()]
    told = [(row["event"], row["device"]) for row in rows if row["event"].startswith("pairing.")]
    assert told == [("pairing.made", link.device_id), ("pairing.ended", link.device_id)]
    assert (await pair.execd.call("log", "--verify"))[0] == 0
    assert "key" not in names(pair.execd.home)
    assert str(pid) not in names(Path("/proc"))
    assert (await pair.execd.call("run"))[0] == 3


@pytest.mark.clause("E9.3")
async def test_doctor_is_content_with_a_paired_machine_that_runs(pair: Pair) -> None:
    await pair.execd.run(pair.hub)
    code, out, _ = await pair.execd.call("doctor", "--json")
    checks = {check["id"]: check["verdict"] for check in json.loads(out)["checks"]}
    assert (code, [name for name, verdict in checks.items() if verdict == "fail"]) == (0, [])
    assert (checks["hub"], checks["key"], checks["daemon"]) == ("ok", "ok", "ok")


@pytest.mark.clause("E8.4")
async def test_in_mode_ask_the_owner_answers_on_the_command_line(pair: Pair) -> None:
    (pair.execd.home / "execd.toml").write_text('mode = "ask"\nas_root = true', encoding="ascii")
    await pair.execd.run(pair.hub)
    await pair.hub.command("touch", "ran", cwd=pair.execd.root)
    states = pair.hub.dispatcher.states
    await pair.hub.dispatcher.until(
        lambda: [s for s in states if s.state is State.AWAITING_CONSENT]
    )
    assert not (pair.execd.root / "ran").exists()
    assert (await pair.execd.call("consent", "deny", "jb_1"))[0] == 0
    outcome = await pair.hub.final()
    assert (outcome.ending, outcome.started) == (Ending.DENIED, Started.NO)


async def test_a_machine_that_is_paired_is_not_paired_again_by_mistake(pair: Pair) -> None:
    code, _, err = await pair.execd.call("pair", pair.hub.url)
    assert (code, "--replace" in err) == (4, True)
