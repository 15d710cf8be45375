"""Address: where the database is: a file of SQLite's, or a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from upright.api import Secret
from upright.settings.shape import Settings

Server = sa.URL
"""A database of a PostgreSQL server; printed without its password."""
Address = Path | Server


def address(settings: Settings, password: Secret | None) -> Address:
    """Return where the configured database is."""
    section = settings.database
    return server(section.url, password) if section.url else settings.database_path


def server(url: str, password: Secret | None = None) -> Server:
    """Read ``postgresql://user@host:port/name``; what it leaves out is the driver's default."""
    secret = password.reveal() if password else None
    return sa.make_url(url).set(password=secret)


def driven(server: Server) -> Server:
    """Return the address as SQLAlchemy takes it: with the driver's name in it."""
    return server.set(drivername="postgresql+asyncpg")
