"""Oversight: what an operator does to work that is stuck; fills ``web.parts.Oversight``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict

from upright.core.ids import SessionId
from upright.engine.clock import now_ms
from upright.engine.units import Units
from upright.engine.watchman import Watchman
from upright.store import outbox, oversight, views_oversight
from upright.store.errors import NotNowError
from upright.store.unit import Unit
from upright.web.parts import RefusedError


class HubOversight:
    """Every command returns after its commit."""

    def __init__(
        self,
        *,
        units: Units,
        watchman: Watchman,
        woken: Callable[[Collection[SessionId]], None],
        send: Callable[[], None],
        more: Callable[[], Awaitable[Mapping[str, float]]],
    ) -> None:
        self._more = more
        self._units = units
        self._watchman = watchman
        self._woken = woken
        self._send = send

    async def cancel_work(self, work: str) -> object:
        """Cancel a work item and its children."""
        self._woken(await self._units.write(lambda u: oversight.cancel(u, work, u.by)))
        return {"work": work, "cancelled": True}

    async def unblock(self, work: str) -> object:
        """Let a blocked item go on."""
        session = await self._units.write(lambda u: oversight.unblock(u, work, u.by))
        self._woken([session])
        return {"work": work, "session": session, "unblocked": True}

    async def stop(self, session: str) -> object:
        """Stop a session for good."""
        self._woken(await self._units.write(lambda u: oversight.stop(u, session, u.by)))
        return {"session": session, "stopped": True}

    async def wake(self, wait: str) -> object:
        """End a wait as if what it is for had come."""
        session = await self._units.write(lambda u: oversight.wake(u, wait, u.by))
        self._woken([session])
        return {"wait": wait, "session": session, "woken": True}

    async def cancel_wait(self, wait: str) -> object:
        """Take a wait away; its worker decides anew."""
        session = await self._units.write(lambda u: oversight.cancel_wait(u, wait, u.by))
        self._woken([session])
        return {"wait": wait, "session": session, "cancelled": True}

    async def retry_effect(self, effect: str, *, yes: bool) -> object:
        """Send an effect again; one that may be visible only with *yes*."""
        try:
            stored = await self._units.write(lambda u: outbox.retry(u, effect, by=u.by, yes=yes))
        except NotNowError as error:
            raise RefusedError(str(error)) from error
        self._send()
        return {"effect": effect, "state": stored.item.state.value}

    async def discard_effect(self, effect: str) -> object:
        """Drop an effect that is held or pending; its session is told."""

        def unit(u: Unit) -> SessionId:
            outbox.discard(u, effect, f"discarded by {u.by}")
            return SessionId(outbox.read(u.c, effect).session)

        self._woken([await self._units.write(unit)])
        return {"effect": effect, "state": "dead"}

    def stalled(self) -> Sequence[Mapping[str, object]]:
        """List what the oracle knows to be stalled."""
        return [asdict(one) for one in self._watchman.stalled]

    async def gauges(self) -> Mapping[str, float]:
        """Return figures for Prometheus: others', what is stalled, how long each queue waits."""
        at = now_ms(self._units.clock)
        ages = await self._units.read(views_oversight.oldest)
        waits = {
            f'upright_oldest_seconds{{queue="{name}"}}': max(at - since, 0) / 1000
            for name, since in ages.items()
            if since is not None
        }
        return {
            **await self._more(),
            "upright_stalled": float(len(self._watchman.stalled)),
            **waits,
        }
