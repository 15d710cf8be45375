"""The profiles without network: no socket, no secrets, or nothing written at all (B14.6, E8.6)."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from fixtures.eventually import eventually
from fixtures.local_execd import Local, end_all, running
from fixtures.require import skip_or_fail
from upright_execd import selftest
from upright_execd.confinement import OFFLINE, enforceable
from upright_execd.ownerline import ask
from upright_wire.command import Ending, Outcome, Started, Stream
from upright_wire.spec import Confinement

NO_NETWORK: Final = Confinement.WORKSPACE_NO_NETWORK
READ_ONLY: Final = Confinement.READ_ONLY
CANARY: Final = "canary-3f9a"
FILTERED: Final = "seccomp.restrict(seccomp.no_network())"
PYTHON: Final = "/usr/bin/python3"


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Local]:
    if not set(OFFLINE) <= await asyncio.to_thread(enforceable):
        skip_or_fail("landlock", "kernel: Landlock ABI 3 (Linux 6.2), x86-64 or arm64")
    environment = {"PATH": os.defpath, "HOME": "/root", "GITHUB_TOKEN": CANARY, "LANG": "C"}
    rules = ('mode = "allow"', "readable = []")
    async with running(tmp_path, rules, environment=environment) as local:
        yield local
    end_all(tmp_path / "home")


async def shell(
    local: Local, script: str, profile: Confinement = NO_NETWORK, command_id: str = "jb_1"
) -> Outcome:
    return await local.run("sh", "-c", script, confinement=profile, command_id=command_id)


async def python(local: Local, script: str, profile: Confinement) -> Outcome:
    if not await asyncio.to_thread(Path(PYTHON).exists):
        skip_or_fail("python3", "apt-get install python3")
    return await local.run(PYTHON, "-c", script, confinement=profile)


async def test_in_its_workspace_it_may_do_what_it_wants(local: Local) -> None:
    script = "echo x > f && cat f && ls / >/dev/null; mktemp >/dev/null && cat /etc/hostname"
    outcome = await shell(local, script)
    assert (outcome.ending, outcome.number) == (Ending.EXITED, 0)


@pytest.mark.clause("B14.6", "E8.6")
@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET"])
@pytest.mark.parametrize("profile", sorted(OFFLINE))
async def test_it_opens_no_socket_of_any_family(
    local: Local, profile: Confinement, family: str
) -> None:
    script = f"import socket; socket.socket(socket.{family})"
    outcome = await python(local, script, profile)
    assert outcome.number == 1
    (said,) = [*await _stderr(local)]
    assert b"PermissionError" in said


async def _stderr(local: Local) -> list[bytes]:
    return [part for part in await local.output(stream=Stream.STDERR) if isinstance(part, bytes)]


@pytest.mark.clause("E8.6")
async def test_a_listener_beside_it_is_never_reached(local: Local) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        assert (await python(local, script, NO_NETWORK)).number == 1
        with pytest.raises(BlockingIOError):
            server.accept()
        allowed = await local.run(
            PYTHON, "-c", script, confinement=Confinement.WORKSPACE, command_id="jb_2"
        )
        assert allowed.number == 0


async def test_pairs_of_sockets_and_pipes_are_left_to_it(local: Local) -> None:
    script = "import socket, os; socket.socketpair(); os.pipe()"
    assert (await python(local, script, NO_NETWORK)).number == 0


@pytest.mark.clause("B14.6", "E8.6")
async def test_it_reads_no_secret_of_its_owner(local: Local, tmp_path: Path) -> None:
    for name in ("home/execd.toml", "secret"):
        path = tmp_path / name
        path.write_text(f'mode = "allow" # {CANARY}', encoding="ascii")
    script = (
        f"cat {tmp_path}/secret; cat {tmp_path}/home/execd.toml; ls {tmp_path}; ls ~; "
        f"env; cat /proc/{os.getpid()}/environ; ln -s {tmp_path}/secret l; cat l; "
        f"cat ../home/state/commands/open/*/spec; cat ../secret"
    )
    await shell(local, script)
    told = [*await local.output(), *await _stderr(local)]
    assert CANARY.encode() not in b"".join(part for part in told if isinstance(part, bytes))


async def test_with_the_network_it_has_the_owners_environment(local: Local) -> None:
    await shell(local, "echo $GITHUB_TOKEN", Confinement.WORKSPACE)
    assert await local.output() == [f"{CANARY}\n".encode()]


async def test_git_works_there_though_its_owners_settings_are_out_of_reach(
    local: Local,
) -> None:
    identity = "-c user.name=n -c user.email=e@example.org"
    script = f"git init -q && git {identity} commit -q --allow-empty -m m && git log --oneline"
    outcome = await shell(local, script)
    assert (outcome.ending, outcome.number) == (Ending.EXITED, 0)


async def test_the_daemons_own_python_runs_there(local: Local) -> None:
    outcome = await local.run(
        sys.executable, "-I", "-S", "-c", "import json", confinement=NO_NETWORK
    )
    assert outcome.number == 0


async def test_what_is_listed_as_readable_it_reads_and_does_not_change(
    local: Local, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "t").write_text("tool\n", encoding="ascii")
    settings = tmp_path / "home/execd.toml"
    settings.write_text(f'mode = "allow"\nreadable = ["{tools}"]', encoding="ascii")
    await asyncio.to_thread(ask, local.daemon.house.paths, {"op": "reload"})
    await eventually(lambda: local.daemon.house.rules().settings.readable)
    await shell(local, "cat ../tools/t; echo x > ../tools/t")
    assert await local.output() == [b"tool\n"]
    assert (tools / "t").read_text(encoding="ascii") == "tool\n"


@pytest.mark.clause("E8.6")
@pytest.mark.parametrize(
    "script", ["echo x > f", "rm kept", "mkdir d", ": > kept", "echo x > ../f", "mv kept l"]
)
async def test_read_only_changes_nothing_and_reads_everything(local: Local, script: str) -> None:
    (local.root / "kept").write_text("kept\n", encoding="ascii")
    outcome = await shell(local, f"cat kept && {script}", READ_ONLY)
    assert outcome.number != 0
    assert await local.output() == [b"kept\n"]
    assert [path.name for path in local.root.iterdir()] == ["kept"]
    assert (local.root / "kept").read_text(encoding="ascii") == "kept\n"


async def test_read_only_has_temporary_files(local: Local) -> None:
    assert (await shell(local, 'echo x > "$(mktemp)"', READ_ONLY)).number == 0


@pytest.mark.clause("E8.6")
async def test_bounds_hold_for_all_that_it_starts(local: Local, tmp_path: Path) -> None:
    script = (
        f"(setsid {PYTHON} -c 'import socket; socket.socket()' || echo no); "
        f"touch {tmp_path}/x || echo no"
    )
    await shell(local, script)
    assert await local.output() == [b"no\nno\n"]
    assert not (tmp_path / "x").exists()


@pytest.mark.clause("E8.6")
async def test_bounds_do_not_stay_with_the_shim(local: Local) -> None:
    for number, profile in enumerate((NO_NETWORK, Confinement.NONE, READ_ONLY, Confinement.NONE)):
        outcome = await shell(local, "echo x > ../out", profile, f"jb_{number}")
        assert (outcome.number == 0) is (profile is Confinement.NONE)


async def test_a_program_that_is_not_there_never_started_under_bounds_either(local: Local) -> None:
    outcome = await local.run("no-such-program", confinement=NO_NETWORK)
    assert (outcome.ending, outcome.started) == (Ending.SPAWN_FAILED, Started.NO)


def test_the_self_test_finds_no_fault_and_says_why_when_it_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not set(OFFLINE) <= enforceable():
        skip_or_fail("landlock", "kernel: Landlock ABI 3 (Linux 6.2), x86-64 or arm64")
    assert selftest.faults() == []
    monkeypatch.setattr(selftest, "PROGRAM", selftest.PROGRAM.replace(FILTERED, ""))
    assert selftest.faults() == ["reaches the internet", "reaches local sockets"]
    monkeypatch.setattr(selftest, "PROGRAM", "raise SystemExit('broken')")
    assert selftest.faults() == ["broken"]
