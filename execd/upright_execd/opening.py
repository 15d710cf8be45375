"""Opening: what a thread opens for a task is not lost when the task is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def opened(make: Callable[[], T], close: Callable[[T], None]) -> T:
    """Return what *make* opens in a thread; if nobody waits for it any more, *close* it there.

    A thread can't be cancelled: it opens all the same, a moment later.
    """
    opening = asyncio.get_running_loop().run_in_executor(None, make)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(partial(_discard, close))
        raise


def _discard(close: Callable[[T], None], opening: asyncio.Future[T]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        close(opening.result())
