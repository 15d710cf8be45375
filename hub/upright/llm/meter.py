"""Meter: no call begins that a budget or an open breaker forbids; every caller goes through it.

What is under way is reserved by its prompt. So a budget may be overshot by what the calls under way
answer, and by the prompt and the answer of the one that was let go last; on several hubs by those
of each. Counts of calls are exact on one hub.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from upright.core.budget import NOTHING, Caps, Key, Level, Used, judge, stopping
from upright.engine.clock import now_ms
from upright.engine.ports import (
    ChatReply,
    ChatRequest,
    ModelAuthError,
    ModelError,
    ModelHeldError,
    ModelToolsError,
    Reckoned,
)
from upright.engine.units import Units
from upright.llm.abilities import LACKING, TOOLS
from upright.llm.roles import Endpoint, Roles
from upright.store import budgets, endpoints
from upright.store.budgets import Told
from upright.store.errors import StoreUnavailableError
from upright.store.events import About
from upright.store.ledger import cause
from upright.store.unit import Connection, Unit

log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What decides whether a call may begin."""

    keys: tuple[Key, ...]
    every: Caps
    told: tuple[Told, ...]
    known: endpoints.Known | None

    @property
    def spent(self) -> list[Key]:
        return [one.standing.key for one in self.told]


class Meter:
    """Implements ``engine.ports.ChatModel``: asks the role's endpoint, or raises ModelHeldError."""

    def __init__(self, roles: Roles, units: Units, caps: Caps) -> None:
        """Make a meter; *caps* are those of the configuration."""
        self._roles = roles
        self._units = units
        self._caps = caps
        self._numbers = itertools.count()
        self._under_way: dict[int, tuple[tuple[Key, ...], Used]] = {}
        self._ended = asyncio.Condition()
        self._ends = 0

    async def start(self) -> None:
        """Get every endpoint ready."""
        await self._roles.start()

    async def stop(self) -> None:
        """Close every connection."""
        await self._roles.stop()

    def reckon(self, request: ChatRequest, said_chars: int) -> Reckoned:
        """See ``engine.ports.ChatModel``."""
        return self._roles.reckon(request, said_chars)

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        """Ask the model, when that may be.

        Raises:
            ModelHeldError: a budget is used up, or the endpoint's breaker is open.
            ModelError: as ``engine.ports.ChatModel.complete``; a refused key or bill, and a model
                that can't call tools, open the breaker.
        """
        endpoint = self._roles.endpoint(request.role)
        number = await self._let_go(endpoint, request)
        try:
            return await endpoint.complete(request, on_part)
        except (ModelAuthError, ModelToolsError) as error:
            if isinstance(error, ModelToolsError) and request.form is not None:
                raise  # an answer in a shape has other ways
            await self._hold(endpoint, error)
            raise _held(error) from error
        finally:
            del self._under_way[number]
            self._ends += 1
            async with self._ended:
                self._ended.notify_all()
            await self._learn(endpoint)

    # -------------------------------------------------------------- before a call
    async def _let_go(self, endpoint: Endpoint, request: ChatRequest) -> int:
        """Wait until the call may begin, and reserve its prompt; return its number."""
        while True:
            ends = self._ends
            seen = await self._units.read(lambda c: self._look(c, endpoint, request))
            await self._refuse(endpoint, request, seen)
            if self._ends != ends:  # what was read may lack what has ended since: look again
                continue
            if not any(self._is_reserved(one, seen.every) for one in seen.told):
                break
            async with self._ended:  # calls under way may use up the rest: they end first
                await self._ended.wait_for(partial(self._has_ended_since, ends))
        number = next(self._numbers)
        prompt = endpoint.reckon(request, 0)
        coming = Used(tokens=prompt.usage.input, usd_micros=prompt.cost_usd_micros or 0, steps=1)
        self._under_way[number] = (seen.keys, coming)
        return number

    def _look(self, c: Connection, endpoint: Endpoint, request: ChatRequest) -> _Seen:
        session = request.session.partition(".")[0]  # a side step's has more behind it
        keys, every = cause(c, session).scopes(), budgets.caps(c, self._caps)
        capped = [key for key in keys if every.of(key)]
        told = budgets.told(c, capped, now_ms(self._units.clock))
        known = endpoints.read(c, endpoint.settings.id)
        return _Seen(keys=keys, every=every, told=tuple(told), known=known)

    async def _refuse(self, endpoint: Endpoint, request: ChatRequest, seen: _Seen) -> None:
        """Raise ModelHeldError when the rows say that the call may not begin."""
        if seen.known is not None:
            endpoint.abilities.know(seen.known.can)
            if seen.known.held_at_ms is not None:
                raise _held(seen.known.held_reason)
        if request.tools and request.form is None and endpoint.abilities.has(TOOLS) is False:
            error = ModelToolsError(f"it can't call tools; {LACKING[TOOLS]}")
            await self._hold(endpoint, error)
            raise _held(error)
        stopped = stopping((one.standing for one in seen.told), seen.every)
        if stopped is None:
            return
        await self._units.write(lambda u: self._tell(u, seen, request.session))
        until_ms = stopped.key.renews_ms(now_ms(self._units.clock))
        raise ModelHeldError(stopped.sentence, until_ms=until_ms)

    def _tell(self, u: Unit, seen: _Seen, session: str) -> None:
        about = About(session_id=session.partition(".")[0])
        for one in budgets.told(u.c, seen.spent, u.now_ms):
            budgets.tell(u, one, seen.every, about)

    def _is_reserved(self, one: Told, every: Caps) -> bool:
        """Say whether calls under way may use up what is left of a scope."""
        coming = NOTHING
        for keys, used in self._under_way.values():
            if one.standing.key in keys:
                coming = coming.plus(used)
        found = judge(one.standing, every, coming=coming)
        return coming != NOTHING and found is not None and found.level is Level.STOP

    def _has_ended_since(self, ends: int) -> bool:
        return self._ends != ends

    # -------------------------------------------------------------- after it
    async def _hold(self, endpoint: Endpoint, error: ModelError) -> None:
        """Open the endpoint's breaker; it stays open over restarts, until a person closes it."""
        settings, code, reason = endpoint.settings, error.code, str(error)
        log.error("model.held", extra={"endpoint": settings.base_url, "code": code})
        await self._units.write(
            lambda u: endpoints.hold(u, settings.id, settings.base_url, code=code, reason=reason)
        )

    async def _learn(self, endpoint: Endpoint) -> None:
        """Store what the call has shown of its endpoint; without a store, after the next call.

        The answer of the call, or its failure, never waits for that: it was paid for.
        """
        news, settings = endpoint.abilities.news(), endpoint.settings
        if not news:
            return
        try:
            await self._units.write(
                lambda u: endpoints.learned(u, settings.id, settings.base_url, news)
            )
        except StoreUnavailableError as error:
            endpoint.abilities.keep(news)
            log.warning("model.not_learned", extra={"reason": str(error), "what": sorted(news)})


def _held(reason: object) -> ModelHeldError:
    return ModelHeldError(f"the model can't be used: {reason}")
