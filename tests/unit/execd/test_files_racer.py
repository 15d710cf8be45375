"""A racer swaps a folder for a link, again and again: nothing outside is read or written."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from upright_execd.files import reading, writing
from upright_execd.files.errors import FilesError

TRIES = 2000


def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder, text in ((inside, "ours"), (outside, "secret")):
        (folder / "d").mkdir(parents=True)
        (folder / "d" / "f").write_text(text)
    over = threading.Event()

    def race() -> None:
        while not over.is_set():
            (inside / "d").rename(inside / "away")
            (inside / "d").symlink_to(outside / "d")
            (inside / "d").unlink()
            (inside / "away").rename(inside / "d")

    racer = threading.Thread(target=race)
    racer.start()
    root = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
    read = written = 0
    try:
        for _ in range(TRIES):
            try:
                assert reading.read_file(root, "d/f")["text"] == "ours"
                read += 1
                writing.write_file(root, "d/f", b"ours")
                written += 1
            except FilesError:
                continue
    finally:
        over.set()
        racer.join()
        os.close(root)
    assert (outside / "d" / "f").read_text() == "secret"
    assert sorted(path.name for path in (outside / "d").iterdir()) == ["f"]
    assert read > 0
