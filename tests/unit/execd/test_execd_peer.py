from __future__ import annotations

import socket
from pathlib import Path

import pytest

from upright_execd.peer import connect, is_same_user, listen


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
