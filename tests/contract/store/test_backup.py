"""Backups: one snapshot of everything, from either database into either, whole or not at all."""

from __future__ import annotations

import asyncio
import io
import itertools
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa

from fixtures.databases import opened
from fixtures.postgres import Filled
from fixtures.store_rows import put, story
from upright.store import backup, copying, schema, tables, tables_world, views, views_events
from upright.store.address import Address
from upright.store.errors import BackupError, StoreInUseError
from upright.store.restoring import Restoring, restore
from upright.store.spill import Spill
from upright.store.tables import OUTBOX, PAYLOAD, SESSION, TRIGGER

pytestmark = pytest.mark.may_block
AT_MS: Final = 1_780_000_000_000
LARGE: Final = b"\x00large" * 100


@pytest.fixture
def make_other(
    make_address: Callable[[], Address], request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[], Address]]:
    """Give a maker of databases of the other kind than ``make_address`` makes."""
    if isinstance(make_address(), Path):
        databases: Filled = request.getfixturevalue("filled_databases")
        with databases.lend() as lent:
            yield lambda: lent
        return
    numbers = itertools.count()

    def made() -> Path:
        path = tmp_path / f"other{next(numbers)}.db"
        schema.create(path)
        return path

    yield made


def changed(where: Address, job: Callable[[sa.Connection], object]) -> None:
    """Change a database that nobody else has."""
    if isinstance(where, Path):
        copying.change(where, job)
    else:
        schema.on_server(where, job)


def filled(where: Address, spill: Spill | None = None) -> None:
    """Put the story into a database, with an effect of each state and a large payload."""

    def job(c: sa.Connection) -> None:
        story(c)
        for state in ("held", "pending", "sending"):
            put(c, effect(f"ob_{state}", state))
        if spill is not None:
            named = spill.keep(LARGE)
            large = tables.Payload(
                id="pl_large",
                media_type="text/plain",
                body=b"",
                size=len(LARGE),
                spilled=named,
                created_at_ms=1,
            )
            put(c, large)

    changed(where, job)


def effect(name: str, state: str) -> tables_world.Outbox:
    return tables_world.Outbox(
        id=name,
        session_id="se_fix",
        work_id="wk_fix",
        effect_class="reply",
        source="github",
        destination_json='{"source":"github","kind":"comment","address":[["number","7"]]}',
        text="Done.",
        idempotency_key=name,
        digest="d",
        state=state,
        due_at_ms=1,
        created_at_ms=1,
    )


def restoring(
    file: Path, where: Address, *, spill: Spill | None = None, replace: bool = False
) -> Restoring:
    ids = itertools.count()
    return Restoring(
        file=file,
        where=where,
        spill=spill,
        replace=replace,
        now_ms=AT_MS,
        new_id=lambda kind: f"{kind[:2]}_{next(ids):026d}",
    )


def all_of(where: Address, table: sa.Table) -> list[tuple[object, ...]]:
    """Read a table's rows, but for what differs between two databases by right."""
    shown = [column for column in table.c if column.name != "xact"]
    order = list(table.primary_key)
    return copying.look(
        where, lambda c: [tuple(row) for row in c.execute(sa.select(*shown).order_by(*order))]
    )


UNCHANGED: Final = tuple(
    table
    for table in schema.METADATA.sorted_tables
    if table.name not in {"outbox", "event", "trigger", "delivery", "dedupe", "payload", "session"}
)


def states(where: Address) -> dict[str, str]:
    chosen = sa.select(OUTBOX.c.id, OUTBOX.c.state)
    return copying.look(where, lambda c: {row.id: row.state for row in c.execute(chosen)})


# ------------------------------------------------------------------ there and back
def test_what_is_restored_is_what_was_there_and_nothing_is_sent_again(
    make_address: Callable[[], Address], tmp_path: Path
) -> None:
    here, there, file = make_address(), make_address(), tmp_path / "b.tar"
    filled(here)
    backup.write(here, None, file, at_ms=AT_MS)
    said = restore(restoring(file, there))
    for table in UNCHANGED:
        assert all_of(there, table) == all_of(here, table), table.name
    before, after = all_of(here, TRIGGER), all_of(there, TRIGGER)
    assert after[: len(before)] == before
    assert states(there) == {
        **states(here),
        "ob_held": "held",
        "ob_pending": "unknown",
        "ob_sending": "unknown",
    }
    assert "2 waited to be sent" in said[1]
    assert "unknown now" in said[1]


def test_a_backup_goes_from_one_kind_of_database_into_the_other_and_events_are_seen_there(
    make_address: Callable[[], Address], make_other: Callable[[], Address], tmp_path: Path
) -> None:
    here, there, file = make_address(), make_other(), tmp_path / "b.tar"
    filled(here)
    backup.write(here, None, file, at_ms=AT_MS)
    restore(restoring(file, there))
    for table in UNCHANGED:
        assert all_of(there, table) == all_of(here, table), table.name
    shown = copying.look(there, lambda c: views_events.events_since(c, 0, limit=99))
    assert len(shown) >= len(all_of(here, tables.EVENT))


async def test_after_a_restore_new_rows_get_numbers_behind_the_old_ones(
    make_address: Callable[[], Address], tmp_path: Path
) -> None:
    def work() -> Address:
        here, there, file = make_address(), make_address(), tmp_path / "b.tar"
        filled(here)
        backup.write(here, None, file, at_ms=AT_MS)
        restore(restoring(file, there))
        return there

    there = await asyncio.to_thread(work)
    last = (await asyncio.to_thread(all_of, there, tables.EVENT))[-1][0]
    store = await opened(there)
    try:
        row = {"at_ms": 1, "stop": "next", "data_json": "{}"}
        await store.write(lambda c: c.execute(tables.EVENT.insert(), row).close())
        newest = await store.read(views_events.last_seq)
    finally:
        await store.close()
    assert newest == int(str(last)) + 1


def test_a_large_payload_comes_along_as_a_file_or_in_its_row(
    empty_file: Path, make_address: Callable[[], Address], tmp_path: Path
) -> None:
    here, file = Path(shutil.copy(empty_file, tmp_path / "here.db")), tmp_path / "b.tar"
    filled(here, Spill(tmp_path / "spill"))
    backup.write(here, Spill(tmp_path / "spill"), file, at_ms=AT_MS)
    there = make_address()
    spill = Spill(tmp_path / "other") if isinstance(there, Path) else None
    restore(restoring(file, there, spill=spill))
    raw = copying.look(there, lambda c: views.payload(c, "pl_large"))
    assert (spill.read(raw.spilled) if spill else raw.body) == LARGE


async def test_a_backup_is_made_while_a_hub_has_the_database(
    make_address: Callable[[], Address], tmp_path: Path
) -> None:
    here = make_address()
    await asyncio.to_thread(filled, here)
    store = await opened(here)
    try:
        made = await asyncio.to_thread(backup.write, here, None, tmp_path / "b.tar", at_ms=AT_MS)
    finally:
        await store.close()
    assert made.rows["trigger"] == 3


# ------------------------------------------------------------------ refusals
async def test_a_running_hubs_database_is_not_restored_over(
    make_address: Callable[[], Address], tmp_path: Path
) -> None:
    here, file = make_address(), tmp_path / "b.tar"
    await asyncio.to_thread(backup.write, here, None, file, at_ms=AT_MS)
    store = await opened(here)
    try:
        with pytest.raises(StoreInUseError):
            await asyncio.to_thread(restore, restoring(file, here, replace=True))
    finally:
        await store.close()


def test_rows_are_replaced_only_when_that_is_said(
    make_address: Callable[[], Address], tmp_path: Path
) -> None:
    empty, full, file = make_address(), make_address(), tmp_path / "b.tar"
    filled(full)
    backup.write(empty, None, file, at_ms=AT_MS)
    with pytest.raises(BackupError, match="holds 3 triggers and 2 sessions; --replace"):
        restore(restoring(file, full))
    assert len(all_of(full, TRIGGER)) == 3
    restore(restoring(file, full, replace=True))
    assert all_of(full, TRIGGER) == []


def broken(file: Path, how: str, tmp_path: Path) -> None:
    """Break a backup."""
    whole = file.read_bytes()
    match how:
        case "cut":
            file.write_bytes(whole[: len(whole) // 2])
        case "turned":
            said = whole.index(b"Done.")  # a text of a row: the database is a good one all the same
            file.write_bytes(whole[:said] + bytes([whole[said] ^ 1]) + whole[said + 1 :])
        case "foreign":
            file.write_bytes(b"PK\x03\x04 no backup at all" * 99)
        case "another tar":
            (tmp_path / "x").write_bytes(b"x")
            with tarfile.open(file, "w") as tar:
                tar.add(tmp_path / "x", "../../etc/passwd")
        case "hole":  # ten gigabytes that nobody sent
            with tarfile.open(file) as tar:
                found = tar.extractfile(backup.MANIFEST)
                assert found is not None
                manifest = found.read()
            with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as tar:
                head = tarfile.TarInfo(backup.MANIFEST)
                head.size = len(manifest)
                tar.addfile(head, io.BytesIO(manifest))
                hole = tarfile.TarInfo(backup.DATABASE)
                size = str(10 * 1024**3)
                hole.pax_headers = {"GNU.sparse.map": f"{size},0", "GNU.sparse.size": size}
                tar.addfile(hole)
        case _:
            file.write_bytes(b"")


@pytest.mark.parametrize("how", ["cut", "turned", "foreign", "another tar", "hole", "empty"])
def test_a_broken_or_foreign_file_is_refused_in_one_sentence_and_nothing_changes(
    empty_file: Path, tmp_path: Path, how: str
) -> None:
    here, file = Path(shutil.copy(empty_file, tmp_path / "here.db")), tmp_path / "b.tar"
    filled(here)
    backup.write(here, None, file, at_ms=AT_MS)
    before = all_of(here, TRIGGER)
    broken(file, how, tmp_path)
    with pytest.raises(BackupError, match="nothing was changed"):
        restore(restoring(file, here, replace=True))
    assert all_of(here, TRIGGER) == before
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_a_backup_of_another_revision_is_refused_by_both_names(
    empty_file: Path, tmp_path: Path
) -> None:
    here, file = Path(shutil.copy(empty_file, tmp_path / "here.db")), tmp_path / "b.tar"
    backup.write(here, None, file, at_ms=AT_MS)
    _repack(file, b'"revision": "0001"', b'"revision": "0000"')
    with pytest.raises(BackupError, match="revision 0000; this program reads format 1, revision"):
        restore(restoring(file, here, replace=True))


def _repack(file: Path, old: bytes, new: bytes) -> None:
    whole = file.read_bytes()
    assert whole.count(old) == 1
    file.write_bytes(whole.replace(old, new))


# ------------------------------------------------------------------ whole or not at all
_KILLED: Final = """
import os, signal, sys
from pathlib import Path
import sqlalchemy as sa
from upright.store.restoring import Restoring, restore
where = sa.make_url(sys.argv[2]) if "://" in sys.argv[2] else Path(sys.argv[2])
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
restore(Restoring(file=Path(sys.argv[1]), where=where, spill=None, replace=True, now_ms=1,
    new_id=lambda kind: kind + "_x", swapping=die))
"""


def test_a_kill_in_the_last_moment_leaves_the_old_database_whole(
    make_address: Callable[[], Address], tmp_path: Path
) -> None:
    empty, full, file = make_address(), make_address(), tmp_path / "b.tar"
    filled(full)
    backup.write(empty, None, file, at_ms=AT_MS)
    before = {table.name: all_of(full, table) for table in (*UNCHANGED, TRIGGER, SESSION, PAYLOAD)}
    where = str(full) if isinstance(full, Path) else full.render_as_string(hide_password=False)
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(file), where], check=False, timeout=60
    )
    assert done.returncode == -9
    for table in (*UNCHANGED, TRIGGER, SESSION, PAYLOAD):
        assert all_of(full, table) == before[table.name], table.name
    restore(restoring(file, full, replace=True))
    assert all_of(full, TRIGGER) == []


def test_a_database_that_is_broken_beyond_reading_is_replaced(
    empty_file: Path, tmp_path: Path
) -> None:
    here, file = Path(shutil.copy(empty_file, tmp_path / "here.db")), tmp_path / "b.tar"
    filled(here)
    backup.write(here, None, file, at_ms=AT_MS)
    before = all_of(here, TRIGGER)
    here.write_bytes(b"no database" * 999)
    here.with_name("here.db-wal").write_bytes(b"an old log")
    restore(restoring(file, here, replace=True))
    assert all_of(here, TRIGGER)[: len(before)] == before
