from __future__ import annotations

import os
from pathlib import Path

import pytest

from upright_execd.shim.order import Order, arguments

NUMBERS = {
    "lock": 3,
    "cwd": 4,
    "timeout_ms": 1500,
    "grace_ms": 250,
    "quota_bytes": 4096,
    "signal": 15,
}


def test_a_shim_reads_what_the_daemon_wrote_byte_for_byte() -> None:
    argv = [b"printf", b"--", b"", b"\xff\xfe", "ü\u202e".encode()]
    words = arguments(NUMBERS, ("/a folder", "/bell"), [Path("/w 1"), Path("/w2")], argv)
    order = Order([os.fsdecode(word) for word in words])
    assert order.argv == argv
    assert order.writable == ["/w 1", "/w2"]
    assert (order.folder, order.bell, order.lock, order.cwd) == ("/a folder", "/bell", 3, 4)
    assert (order.timeout_s, order.grace_s, order.quota_bytes, order.signal) == (
        1.5,
        0.25,
        4096,
        15,
    )


@pytest.mark.parametrize("argv", [[], [b"x"]])
def test_an_order_without_a_command_or_its_mark_is_refused(argv: list[bytes]) -> None:
    words = [os.fsdecode(word) for word in arguments(NUMBERS, ("/f", "/b"), [], argv)]
    if argv:
        words[8] = "x"
    with pytest.raises(ValueError, match="--"):
        Order(words)
