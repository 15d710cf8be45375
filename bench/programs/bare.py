"""Bare: the limit. The HMAC, then one row in SQLite by the same group commit as the hub's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import sqlalchemy as sa

from bench.programs.endpoint import arguments, serve
from upright.store.writer import Writer, open_engine

ROWS = sa.Table(
    "row",
    sa.MetaData(),
    sa.Column("guid", sa.String, primary_key=True),
    sa.Column("body", sa.LargeBinary),
)
ADD = ROWS.insert()


async def main(database: str, ready: Path) -> None:
    """Serve."""
    engine = open_engine(database)
    await asyncio.to_thread(ROWS.metadata.create_all, engine)
    writer = Writer(engine)

    async def keep(guid: str, body: bytes) -> None:
        await writer.run(lambda c: c.execute(ADD, {"guid": guid, "body": body}).rowcount)

    try:
        await serve(keep, ready)
    finally:
        await writer.close()


if __name__ == "__main__":
    given = arguments()
    asyncio.run(main(given.database, given.ready))
