"""What is run past SQLAlchemy reads, writes, fails and is taken back as what is run by it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from upright.store.database import Store
from upright.store.memory import Memory
from upright.store.quick import QuickConnection
from upright.store.unit import Unit
from upright.store.writer import open_engine

META = sa.MetaData()
THING = sa.Table(
    "thing",
    META,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String, nullable=False, unique=True),
    sa.Column("on", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("data", sa.LargeBinary),
    sa.Column("made", sa.String, default=lambda: "by Python"),
)
ADD = THING.insert()
NAMED = sa.select(THING.c.id, THING.c.name, THING.c.on, THING.c.data).where(
    THING.c.name == sa.bindparam("called")
)
COUNT = sa.select(sa.func.count()).select_from(THING)
RENAME = (
    THING.update().where(THING.c.name == sa.bindparam("called")).values(name=sa.bindparam("to"))
)
AMONG = sa.select(THING.c.name).where(THING.c.name.in_(sa.bindparam("names", expanding=True)))
BARE = {"on": True, "data": b"\x00", "made": "here"}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[sa.Connection, sa.Connection]]:
    """Give a quick connection and one that is not, each on a database of its own."""
    engines = [open_engine(str(tmp_path / f"{n}.db"), is_new=True) for n in range(2)]
    for engine in engines:
        META.create_all(engine)
    with QuickConnection(engines[0]) as quick, engines[1].connect() as plain:
        for c in (quick, plain):
            c.begin()
        yield quick, plain
    for engine in engines:
        engine.dispose()


def twice(c: sa.Connection) -> list[object]:
    """Do everything often enough that it has a plan; return what is seen."""
    seen: list[object] = []
    for n in range(3):
        c.execute(ADD, {"id": n, "name": f"n{n}", **BARE})
        c.execute(ADD, [{"id": 10 * n + m, "name": f"m{n}{m}", **BARE} for m in (11, 12)])
        seen.append(c.execute(NAMED, {"called": f"n{n}"}).one()._asdict())
        seen.append([dict(row) for row in c.execute(NAMED, {"called": "n0"}).mappings()])
        seen.append(c.execute(NAMED, {"called": "nobody"}).one_or_none())
        seen.append((c.scalar(COUNT), c.scalar(NAMED, {"called": "nobody"})))
        seen.append(list(c.scalars(NAMED, {"called": f"m{n}1"})))
        seen.append(sorted(c.scalars(AMONG, {"names": ["n0", f"n{n}", "m01"][: n + 1]})))
        seen.append(c.execute(RENAME, {"called": f"m{n}2", "to": f"o{n}"}).rowcount)
        seen.append(c.execute(RENAME, {"called": "nobody", "to": "x"}).rowcount)
    return seen


def test_what_is_quick_gives_what_sqlalchemy_gives(
    both: tuple[sa.Connection, sa.Connection],
) -> None:
    quick, plain = both
    assert twice(quick) == twice(plain)
    assert quick.execute(NAMED, {"called": "n1"}).one().on is True


def test_a_default_of_pythons_is_filled_in(both: tuple[sa.Connection, sa.Connection]) -> None:
    for n in range(3):
        both[0].execute(ADD, {"name": f"n{n}"})
    assert set(both[0].scalars(sa.select(THING.c.made))) == {"by Python"}


def test_what_the_database_refuses_is_sqlalchemys_error(
    both: tuple[sa.Connection, sa.Connection],
) -> None:
    quick, _ = both
    for n in range(3):
        quick.execute(ADD, {"id": n, "name": f"n{n}", **BARE})
    with pytest.raises(sa.exc.IntegrityError, match="UNIQUE"):
        quick.execute(ADD, {"id": 9, "name": "n0", **BARE})


def test_a_value_that_is_missing_is_an_error(both: tuple[sa.Connection, sa.Connection]) -> None:
    for _ in range(3):
        with pytest.raises(sa.exc.StatementError, match="called"):
            both[0].execute(NAMED)


def test_a_part_that_raises_is_taken_back_alone(
    both: tuple[sa.Connection, sa.Connection],
) -> None:
    quick, _ = both
    u = Unit(quick, 0, str)
    add = partial(quick.execute, ADD)

    def part() -> None:
        add({"id": 2, "name": "lost", **BARE})
        u.attempt(lambda: add({"id": 3, "name": "lost, too", **BARE}))
        raise LookupError

    add({"id": 1, "name": "kept", **BARE})
    with pytest.raises(LookupError):
        u.attempt(part)
    u.attempt(lambda: add({"id": 4, "name": "as well", **BARE}))
    assert set(quick.scalars(sa.select(THING.c.name))) == {"kept", "as well"}


async def test_a_query_that_writes_is_refused(tmp_path: Path, empty_file: Path) -> None:
    file = Path(await asyncio.to_thread(shutil.copy, empty_file, tmp_path))
    store = await asyncio.to_thread(Store.open, file)
    make = sa.text("CREATE TABLE more (id)")
    try:
        with pytest.raises(sa.exc.OperationalError, match="readonly"):
            await store.read(lambda c: c.execute(make))
    finally:
        await store.close()


@pytest.mark.may_block
async def test_a_database_in_memory_takes_back_what_fails_and_forgets() -> None:
    memory = Memory()
    make = sa.text("CREATE TABLE more (id)")
    names = sa.text("SELECT count(*) FROM sqlite_master WHERE name = 'more'")

    def fails(c: sa.Connection) -> None:
        c.execute(make)
        raise LookupError

    with pytest.raises(LookupError):
        await memory.write(fails)
    assert await memory.read(lambda c: c.scalar(names)) == 0
    await memory.write(lambda c: c.execute(make))
    assert await memory.read(lambda c: c.scalar(names)) == 1
    memory.forget()
    assert await memory.read(lambda c: c.scalar(names)) == 0
    await memory.close()
