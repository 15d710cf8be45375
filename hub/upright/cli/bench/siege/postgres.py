"""PostgreSQL under siege: its backends are ended, in order and by SIGKILL."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final

from upright.cli.bench.draw import Dice
from upright.cli.bench.errors import BenchError
from upright.engine.ports import Clock
from upright.store.address import Address
from upright.store.errors import StoreUnavailableError
from upright.store.outsider import backends, cut_off, look

BACK_S: Final = 30.0


async def terminate_all(where: Address) -> int:
    """End every backend of the hub; return how many there were."""
    return await look(where, cut_off)


async def crash_one(where: Address, dice: Dice, clock: Clock) -> int:
    """Kill one backend by SIGKILL, and wait until the server has recovered; return how many fell.

    The server ends all the others then, and replays its log.

    Raises:
        BenchError: it did not come back.
    """
    found = await look(where, backends)
    if found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(found[dice.below(len(found))], signal.SIGKILL)
    until = clock.monotonic() + BACK_S
    while True:
        try:
            await look(where, backends)
        except StoreUnavailableError as error:
            if clock.monotonic() > until:
                said = f"PostgreSQL did not come back within {BACK_S:g} s: {error}"
                raise BenchError(said) from error
            await clock.sleep(0.1)
        else:
            return len(found)
