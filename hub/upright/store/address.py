"""Address: where the database is: a file of SQLite's, or a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from upright.settings.secrets import Secrets
from upright.settings.shape import Settings

Server = sa.URL
"""A database of a PostgreSQL server; printed without its password."""
Address = Path | Server


def address(settings: Settings, secrets: Secrets) -> Address:
    """Return where the configured database is; this may block on the key ring.

    Raises:
        SecretMissingError: the password can't be read.
    """
    section = settings.database
    if not section.url:
        return settings.database_path
    password = secrets.resolve(section.password).reveal() if section.password else None
    return server(section.url, password)


def server(url: str, password: str | None = None) -> Server:
    """Read ``postgresql://user@host:port/name``; what it leaves out is the driver's default."""
    return sa.make_url(url).set(drivername="postgresql+asyncpg", password=password)
