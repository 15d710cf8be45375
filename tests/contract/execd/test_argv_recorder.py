"""What was judged is what runs, byte for byte: 10 000 generated commands, and a recorder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

import pytest

from fixtures.require import program
from upright_execd.shim import order
from upright_execd.shim.child import Child
from upright_wire import codec
from upright_wire.frames import Exec
from upright_wire.spec import Confinement, Spec, digest

CASES: Final = 10_000
PIECES: Final = (
    *("$HOME", "`id`", "$(id)", "*", "?", "[a]", "~", "{a,b}", ";", "|", "&&", ">", "<", "\\", "'"),
    *('"', " ", "\t", "\n", "\r", "\x01", "\x1b[2K", "\x7f", "--", "-", "-c", "%s", "%", "=", "#"),
    *("ü", "\u202e", "\u200b", "\ufeff", "\U0001f600", "a", "Z", "0", "..", "/", "\u0430"),
)


def generated(number: int) -> tuple[str, ...]:
    """Return up to five words of up to four pieces; the same number gives the same words."""
    dice = iter(hashlib.sha256(str(number).encode()).digest())
    count = next(dice) % 6
    return tuple(
        "".join(PIECES[next(dice) % len(PIECES)] for _ in range(next(dice) % 5))
        for _ in range(count)
    )


def recorded(argv: tuple[str, ...], place: int, folder: str) -> bytes:
    """Send a command over the wire's text and the shim's message; return what it was run with."""
    spec = Spec(argv=argv, cwd="/", confinement=Confinement.NONE)
    sent = Exec(
        command_id="jb_1",
        channel=1,
        session="se_1",
        lease_epoch=1,
        digest=digest(spec),
        spec=spec,
        ttl_ms=1,
    )
    got = codec.message_of(codec.decode_text(codec.encode_text(sent, 0)))
    assert isinstance(got, Exec)
    assert digest(got.spec) == sent.digest
    names = ("lock", "cwd", "timeout_ms", "grace_ms", "quota_bytes", "signal", "network")
    numbers = dict.fromkeys(names, 1)
    words = [word.encode() for word in got.spec.argv]
    content = order.message(order.arguments(numbers, (folder, "/b"), {}, words), {b"A": b"1"})
    child = Child(order.from_message(content, -1, place), os.devnull, None)
    try:
        with os.fdopen(child.outputs[0], "rb") as file:
            return file.read()
    finally:
        os.close(child.outputs[1])
        os.waitpid(child.pid, 0)


@pytest.mark.case("CVE-2026-32065")
@pytest.mark.clause("E4.2")
@pytest.mark.timeout(240)
def test_what_was_judged_is_what_runs(tmp_path: Path) -> None:
    recorder = program("printf", package="coreutils")
    here = Path.cwd()
    place = os.open(tmp_path, os.O_RDONLY)
    try:
        for number in range(CASES):
            asked = generated(number)
            argv = (recorder, "%s\\0", "first", *asked)
            assert recorded(argv, place, str(tmp_path)) == "\0".join(["first", *asked, ""]).encode()
    finally:
        os.close(place)
        os.chdir(here)
