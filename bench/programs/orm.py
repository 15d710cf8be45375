"""ORM: an endpoint as most are written: one session of the async ORM and one commit a request.

SQLite in the same mode as the hub's: WAL, full durability.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bench.programs.endpoint import arguments, serve


class Base(DeclarativeBase):
    """The tables."""


class Row(Base):
    """One webhook."""

    __tablename__ = "row"
    guid: Mapped[str] = mapped_column(primary_key=True)
    body: Mapped[bytes]


async def main(database: str, ready: Path) -> None:
    """Serve."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{database}", pool_size=5, max_overflow=0)

    @sa.event.listens_for(engine.sync_engine, "connect")
    def _connect(dbapi: DBAPIConnection, _record: object) -> None:
        cursor = dbapi.cursor()
        for pragma in ("busy_timeout=10000", "journal_mode=WAL", "synchronous=FULL"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    sessions = async_sessionmaker(engine)

    async def keep(guid: str, body: bytes) -> None:
        async with sessions() as session:
            session.add(Row(guid=guid, body=body))
            await session.commit()

    try:
        await serve(keep, ready)
    finally:
        await engine.dispose()


if __name__ == "__main__":
    given = arguments()
    asyncio.run(main(given.database, given.ready))
