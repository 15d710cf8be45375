"""Watchdog: a thread that ends a daemon whose loop stands still, so that its service restarts it.

Nothing is lost by that: commands are their shims' own, and all that counts is in their folders.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from typing import Final

from upright_execd.clock import Clock

FROZEN_S: Final = 60.0
BEAT_S: Final = 5.0
EX_TEMPFAIL: Final = 75


class Watchdog:
    """Hears a beat from the loop; when none comes for *frozen_s*, *end* is called, in a thread.

    A machine that slept has no beat either: what counts is how often the thread itself has looked
    since the last one, and it sleeps with the machine.
    """

    def __init__(
        self,
        *,
        frozen_s: float = FROZEN_S,
        beat_s: float = BEAT_S,
        end: Callable[[], None] | None = None,
    ) -> None:
        self._looks_left = self._looks = max(2, round(frozen_s / beat_s))
        self._beat_s, self._end = beat_s, end or _end
        self._stop = threading.Event()

    async def run(self, clock: Clock) -> None:
        """Beat until cancelled."""
        thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        thread.start()
        try:
            while True:
                self._looks_left = self._looks
                await clock.sleep(self._beat_s / 2)
        finally:
            self._stop.set()
            await asyncio.to_thread(thread.join)

    def _watch(self) -> None:
        while not self._stop.wait(self._beat_s):
            self._looks_left -= 1
            if self._looks_left <= 0:
                self._end()
                return


def _end() -> None:
    sys.stderr.write("execd: the loop stands still; this daemon ends, its commands go on.\n")
    sys.stderr.flush()
    os._exit(EX_TEMPFAIL)
