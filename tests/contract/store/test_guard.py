from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import pytest

from upright.store import schema
from upright.store.database import Store
from upright.store.errors import RevisionError, StoreInUseError
from upright.store.guard import Guard

# Opens a store and holds it until its input ends.
HOLDER: Final = """
import sys
from pathlib import Path
from upright.store.database import Store

store = Store.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    schema.create(tmp_path / "s.db")
    return tmp_path / "s.db"


@pytest.fixture
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert pipe(child.stdout).readline() == "open\n"
        yield child
        child.kill()


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@pytest.mark.case("WAL")
def test_a_second_hub_on_the_same_file_is_refused_by_the_first_ones_pid(
    path: Path, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(StoreInUseError, match=f"process {holder.pid}") as refused:
        Store.open(path)
    assert refused.value.pid == holder.pid


def test_another_name_of_the_same_file_opens_no_second_door(
    path: Path, holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    (tmp_path / "alias.db").symlink_to(path)
    with pytest.raises(StoreInUseError) as refused:
        Store.open(tmp_path / "alias.db")
    assert refused.value.pid == holder.pid


def test_a_migration_is_refused_while_a_hub_runs(path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(StoreInUseError) as refused:
        schema.migrate(path)
    assert refused.value.pid == holder.pid


def test_a_killed_hub_leaves_no_lock(path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait(5)
    with Guard(path):
        assert path.with_name("s.db.lock").read_text(encoding="utf-8") == f"{os.getpid()}\n"


def test_a_guard_that_was_released_lets_the_next_one_in(path: Path) -> None:
    first = Guard(path)
    first.release()
    first.release()
    with Guard(path), pytest.raises(StoreInUseError):
        Guard(path)


def test_a_refused_file_is_not_left_locked(path: Path) -> None:
    path.unlink()
    path.touch()
    with pytest.raises(RevisionError):
        Store.open(path)
    with Guard(path):
        pass


async def test_a_closed_store_lets_the_next_one_in(path: Path) -> None:
    for _ in range(2):
        store = await asyncio.to_thread(Store.open, path)
        await store.close()
        await store.close()
    assert await asyncio.to_thread(path.with_name("s.db.lock").read_bytes) == b""
