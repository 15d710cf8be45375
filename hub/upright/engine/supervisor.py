"""Supervisor: the one place where a service's unexpected error is caught, logged and answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from upright.core.backoff import Backoff
from upright.engine.ports import Clock

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A service's state, for people: how often it was started anew, and why the last time."""

    name: str
    running: bool
    restarts: int = 0
    reason: str = ""


class Supervisor:
    """Keeps named services running; a failed one starts again after a growing pause."""

    def __init__(self, clock: Clock, roll: Callable[[], float]) -> None:
        self._clock = clock
        self._roll = roll
        self._backoff = Backoff(base_s=0.5, cap_s=30.0)
        self._health: dict[str, Health] = {}

    def health(self) -> tuple[Health, ...]:
        """Return every service's state, by name."""
        return tuple(self._health[name] for name in sorted(self._health))

    async def keep(self, name: str, service: Callable[[], Awaitable[None]]) -> None:
        """Run a service until it returns; start it again when it fails."""
        restarts = 0
        while True:
            self._health[name] = Health(name=name, running=True, restarts=restarts)
            began = self._clock.monotonic()
            try:
                await service()
            except Exception as error:  # this is the process's one supervisor
                log.exception("service.failed", extra={"service": name, "restarts": restarts})
                steady = self._clock.monotonic() - began > self._backoff.cap_s
                restarts = 1 if steady else restarts + 1
                self._health[name] = Health(
                    name=name, running=False, restarts=restarts, reason=str(error)[:200]
                )
                await self._clock.sleep(self._backoff.delay_s(restarts, roll=self._roll()))
            else:
                self._health[name] = Health(name=name, running=False, restarts=restarts)
                return
