"""Purse: what people see and do of budgets and of the model's endpoints; ``web.parts.Purse``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from upright.compose.mind import Mind
from upright.core.budget import Caps, Key, Measure, Scope
from upright.core.ids import SessionId
from upright.engine.clock import now_ms
from upright.engine.ports import ChatReply, ModelError
from upright.engine.units import Units
from upright.llm.probe import Found, probe
from upright.store import budgets, endpoints, sessions
from upright.store.ledger import Cost
from upright.store.plain import Plain
from upright.store.unit import Unit
from upright.web.parts import RefusedError

EACH: Final = "*"
"""The name that means: each of its scope; of the day it is the only one."""


class Purse:
    """Each change returns after its commit, and lets go on what it no longer holds."""

    def __init__(
        self,
        units: Units,
        caps: Caps,
        mind: Mind | None,
        woken: Callable[[Collection[SessionId]], None],
    ) -> None:
        self._units = units
        self._caps = caps
        self._mind = mind
        self._woken = woken

    # -------------------------------------------------------------- budgets
    async def budgets(self) -> object:
        """List every scope that has a cap, and how much of it is used."""
        at = now_ms(self._units.clock)
        return await self._units.read(lambda c: budgets.listing(c, self._caps, at))

    async def near(self) -> list[Plain]:
        """List what people were warned of and what is used up."""
        at = now_ms(self._units.clock)
        return await self._units.read(lambda c: budgets.near(c, self._caps, at))

    async def put(self, key: Key, measure: Measure, amount: int, by: str) -> object:
        """Set one cap of a scope; 0 takes it away."""
        key = _bounded(key)
        woken = await self._units.write(lambda u: budgets.put(u, key, {measure: amount}, by))
        self._wake(woken)
        return {"scope": key.scope, "name": key.name, "measure": measure, "amount": amount}

    async def clear(self, key: Key, by: str) -> object:
        """Take away what people have set for a scope."""
        key = _bounded(key)
        self._wake(await self._units.write(lambda u: budgets.remove(u, key, by)))
        return {"scope": key.scope, "name": key.name, "cleared": True}

    # -------------------------------------------------------------- endpoints
    async def endpoints(self) -> object:
        """List the endpoints that are known: what they can do, and which breaker is open."""
        return await self._units.read(endpoints.listing)

    async def retry(self, by: str) -> object:
        """Close every breaker: what waits for a model tries again."""
        woken = await self._units.write(lambda u: endpoints.retry_all(u, by))
        self._wake(woken)
        return {"retried": True, "woken": len(set(woken))}

    async def probe(self, role: str) -> object:
        """Find out what a role's endpoint can do, store it, and charge what that cost."""
        if self._mind is None:
            reason = "no model is configured: set [model] base_url and name"
            raise RefusedError(reason)
        endpoint = self._mind.roles.endpoint(role)
        try:
            found = await probe(endpoint, role)
        except ModelError as error:
            reason = f"{endpoint.settings.base_url} can't be used: {error}"
            raise RefusedError(reason) from error
        await self._units.write(lambda u: self._keep(u, endpoint.settings.id, found))
        return shown(found)

    def _keep(self, u: Unit, endpoint: str, found: Found) -> None:
        endpoints.learned(u, endpoint, found.base_url, found.can)
        router = sessions.ensure_router(u)
        for reply in found.replies:
            budgets.spend(u, _cost(router, reply))

    def _wake(self, woken: Sequence[str]) -> None:
        self._woken([SessionId(session) for session in dict.fromkeys(woken)])


def shown(found: Found) -> dict[str, object]:
    """Return what a probe found, for people and programs."""
    return {
        "base_url": found.base_url,
        "model": found.model,
        "can": found.can,
        "lacks": list(found.lacks),
        "calls": len(found.replies),
    }


def _cost(session: str, reply: ChatReply) -> Cost:
    return Cost(
        kind="model",
        session_id=session,
        model=reply.model,
        tokens_input=reply.usage.input,
        tokens_cached=reply.usage.cached,
        tokens_output=reply.usage.output,
        usd_micros=reply.cost_usd_micros,
        seconds=reply.seconds,
        tries=reply.attempts,
        beside=True,
    )


def _bounded(key: Key) -> Key:
    """Return the key of what a person may bound; ``*`` is no name."""
    if key.scope is Scope.TURN:
        reason = "what a turn may use stands in the configuration: [budgets.turn]"
        raise RefusedError(reason)
    return replace(key, name="") if key.name == EACH else key
