from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from upright_execd.peer import connect, is_same_user, listen, marks_above


@pytest.mark.parametrize("depth", [1, 12])
def test_the_owner_reaches_the_socket_however_deep_it_lies(tmp_path: Path, depth: int) -> None:
    folder = tmp_path.joinpath(*["a-rather-long-name"] * depth)
    folder.mkdir(parents=True)
    with listen(folder / "owner.sock") as server, connect(folder / "owner.sock", 5) as client:
        server.settimeout(5)
        there, _ = server.accept()
        with there:
            assert is_same_user(there)
            assert is_same_user(client)
    assert (folder / "owner.sock").stat().st_mode & 0o777 == 0o600


def test_what_an_earlier_daemon_left_is_in_nobodys_way(tmp_path: Path) -> None:
    listen(tmp_path / "owner.sock").close()
    with pytest.raises(ConnectionRefusedError):
        connect(tmp_path / "owner.sock", 5)
    with listen(tmp_path / "owner.sock"), connect(tmp_path / "owner.sock", 5) as client:
        assert client.family is socket.AF_UNIX


@pytest.mark.clause("E8.4")
def test_a_daemon_in_a_command_hears_its_owner_and_not_its_own_commands() -> None:
    outer, inner = b"UPRIGHT_COMMAND_ID=shim-of-1", b"UPRIGHT_COMMAND_ID=shim-of-2"
    mine = marks_above(os.getpid())
    assert mine is not None
    script = (
        "sleep 90 & echo $!; UPRIGHT_COMMAND_ID=shim-of-2 sh -c 'echo $$; exec sleep 90' & wait"
    )
    env = {"PATH": os.defpath, "UPRIGHT_COMMAND_ID": "shim-of-1"}
    daemon = subprocess.Popen(["sh", "-c", script], env=env, stdout=subprocess.PIPE, text=True)
    assert daemon.stdout is not None
    owner, command = (int(daemon.stdout.readline()) for _ in range(2))
    try:
        inherited = marks_above(daemon.pid)
        assert inherited == mine | {outer}
        assert marks_above(owner) == inherited
        assert marks_above(command) == inherited | {inner}
    finally:
        for pid in (owner, command, daemon.pid):
            os.kill(pid, signal.SIGKILL)
        daemon.communicate()


def test_who_is_gone_has_no_marks_that_could_be_trusted() -> None:
    assert marks_above(2**22 - 1) is None
