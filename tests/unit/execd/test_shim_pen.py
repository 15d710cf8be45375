from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from upright_execd.shim import pen
from upright_execd.shim.pen import Pen

FORKS = "while :; do sleep 76 & done"


def groups() -> list[str]:
    return [str(path) for root in pen.ROOTS for path in Path(root).rglob("upright-*")]


@pytest.mark.clause("E6.3")
def test_who_is_forked_meanwhile_dies_with_the_rest_and_no_group_is_left() -> None:
    before = groups()
    with subprocess.Popen(["sh", "-c", FORKS], start_new_session=True) as child:
        found = Pen()
        if groups() == before:
            found.kill()
            os.killpg(child.pid, 9)
            pytest.skip("cgroup: Linux 5.14 and a group that may be divided")
        found.take(child.pid)
        found.kill()
        assert child.wait(timeout=5) == -9
    assert groups() == before
    with suppress(ProcessLookupError):
        os.killpg(child.pid, 9)  # who was forked before it was put in


def test_where_there_is_none_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pen, "ROOTS", ("/nowhere",))
    none = Pen()
    none.take(1)
    none.kill()
