"""A racer swaps a folder for a link, again and again: nothing outside is read or written."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from pathlib import Path

import pytest

from upright_execd.files import reading, writing
from upright_execd.files.errors import FilesError

TRIES = 2000


@pytest.mark.clause("E8.2")
def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder, text in ((inside, "ours"), (outside, "secret")):
        (folder / "d").mkdir(parents=True)
        (folder / "d" / "f").write_text(text)
    over = threading.Event()

    def put_back() -> None:
        """Put the folder back; whoever writes may have made another in its place."""
        while True:
            try:
                (inside / "away").rename(inside / "d")
            except OSError:
                shutil.rmtree(inside / "d", ignore_errors=True)  # a writer may be in it
            else:
                return

    def race() -> None:
        while not over.is_set():
            (inside / "d").rename(inside / "away")
            with contextlib.suppress(FileExistsError):
                (inside / "d").symlink_to(outside / "d")
                (inside / "d").unlink()
            put_back()

    racer = threading.Thread(target=race)
    racer.start()
    root = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(TRIES):
            try:
                assert reading.read_file(root, "d/f")["text"] == "ours"
                writing.write_file(root, "d/f", b"ours")
            except FilesError:
                continue
    finally:
        over.set()
        racer.join()
    assert reading.read_file(root, "d/f")["text"] == "ours"  # and it is there once nobody races
    os.close(root)
    assert (outside / "d" / "f").read_text() == "secret"
    assert sorted(path.name for path in (outside / "d").iterdir()) == ["f"]
