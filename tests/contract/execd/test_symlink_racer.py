"""A folder that is swapped for a link 10 000 times never changes where a command runs (E8.2)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from upright_execd.workspace import Workspace, hold

ROUNDS: Final = 10_000


@pytest.fixture
def raced(tmp_path: Path) -> Iterator[Path]:
    """A name in a workspace that is a folder of it and a link out of it, by turns, very fast."""
    root, outside = tmp_path / "work", tmp_path / "outside"
    (root / "inside").mkdir(parents=True)
    outside.mkdir()
    name, spare = root / "name", root / "spare"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for target in (outside, root / "inside"):
                spare.symlink_to(target)
                spare.replace(name)

    name.symlink_to(root / "inside")
    racer = threading.Thread(target=swap)
    racer.start()
    yield name
    stop.set()
    racer.join()


@pytest.mark.clause("E8.2")
@pytest.mark.timeout(120)
def test_where_it_was_judged_is_where_it_is(raced: Path, tmp_path: Path) -> None:
    workspace = Workspace(path=tmp_path / "work", label="w")
    inside = (tmp_path / "work/inside").stat().st_ino
    outside = (tmp_path / "outside").stat().st_ino
    seen: dict[bool, int] = {True: 0, False: 0}
    for _ in range(ROUNDS):
        held = hold(str(raced), [workspace])
        try:
            is_in = held.workspace is not None
            assert os.fstat(held.handle).st_ino == (inside if is_in else outside)
        finally:
            os.close(held.handle)
        seen[is_in] += 1
    assert min(seen.values()) > 0
