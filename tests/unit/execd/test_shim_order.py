from __future__ import annotations

from pathlib import Path

import pytest

from upright_execd.shim.order import (
    PROGRAM,
    READABLE,
    WRITABLE,
    arguments,
    folder_of,
    from_message,
    message,
)

NUMBERS = {
    "lock": -1,
    "cwd": -1,
    "timeout_ms": 1500,
    "grace_ms": 250,
    "quota_bytes": 4096,
    "signal": 15,
    "network": 0,
}
PLACES = ("/a folder", "/bell")


def test_a_shim_reads_what_the_daemon_wrote_byte_for_byte() -> None:
    argv = [b"printf", b"--", b"", b"\xff\xfe", "ü\u202e".encode()]
    paths = {WRITABLE: [Path("/w 1"), Path("/w2")], READABLE: [Path("/r")], PROGRAM: [Path("/p")]}
    content = message(arguments(NUMBERS, PLACES, paths, argv), {b"A": b"=\xff\n", b"B": b""})
    assert folder_of(content) == "/a folder"
    order = from_message(content, 3, 4)
    assert order.argv == argv
    assert order.variables == {b"A": b"=\xff\n", b"B": b""}
    assert (order.writable, order.readable, order.program) == (["/w 1", "/w2"], ["/r"], "/p")
    assert (order.folder, order.bell, order.lock, order.cwd) == ("/a folder", "/bell", 3, 4)
    assert (order.timeout_s, order.grace_s, order.quota_bytes) == (1.5, 0.25, 4096)
    assert (order.signal, order.without_network) == (15, True)


def test_what_is_not_said_binds_nothing() -> None:
    content = message(arguments({**NUMBERS, "network": 1}, PLACES, {}, [b"x"]), {})
    order = from_message(content, 3, 4)
    assert (order.writable, order.readable, order.program) == ([], [], "")
    assert not order.without_network


@pytest.mark.parametrize("argv", [[], [b"x"]])
def test_an_order_without_a_command_or_its_mark_is_refused(argv: list[bytes]) -> None:
    words = arguments(NUMBERS, PLACES, {}, argv)
    if argv:
        words.remove(b"--")
    with pytest.raises(ValueError, match="--"):
        from_message(message(words, {}), 3, 4)
