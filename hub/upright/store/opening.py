"""Opening: the store that an address names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from upright.store.address import Address
from upright.store.database import Store
from upright.store.postgres import PostgresStore
from upright.store.storage import Storage


async def open_storage(where: Address, roll: Callable[[], float]) -> Storage:
    """Open a database for this hub alone; *roll*, uniform in [0, 1), spreads its retries.

    Raises:
        StoreInUseError: another hub has it open.
        RevisionError: there is none, or its schema is another one.
        StoreUnavailableError: it can't be read or reached, or is no database.
    """
    if isinstance(where, Path):
        return await asyncio.to_thread(Store.open, where)
    return await PostgresStore.open(where, roll=roll)
