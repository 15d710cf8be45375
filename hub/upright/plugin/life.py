"""Life: one source's connector; what it raises decides its state, by one table (C0.4)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from upright.api import (
    Capabilities,
    Connector,
    ConnectorAuthFailedError,
    ConnectorError,
    ConnectorNotReadyError,
    ConnectorType,
    Effect,
    Health,
    InboundRequest,
    Probe,
    Receipt,
    Trigger,
    UnknownSendError,
)
from upright.core import connector as machine
from upright.core.backoff import Backoff
from upright.core.connector import AuthFailed, Broke, ConnectorEvent, ConnectorState, NotReady
from upright.kit.groups import first
from upright.plugin.breaker import Breaker, BreakerLimits
from upright.plugin.context import Context, World, references
from upright.settings.secrets import Secrets

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A source's state as people see it."""

    source: str
    kind: str
    state: ConnectorState
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """Requests that broke the connector: how many, why the last one did, and when."""

    count: int = 0
    last: str = ""
    at: datetime | None = None

    def with_one(self, reason: str, at: datetime) -> DeadLetters:
        """Count one more."""
        return DeadLetters(count=self.count + 1, last=reason, at=at)


class Report(Protocol):
    """Takes every change of a source's state; compose writes it down."""

    def __call__(self, standing: Standing, /) -> Awaitable[None]:
        """Store it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeParts:
    """What every life needs. ``roll`` is uniform in [0, 1)."""

    world: World
    secrets: Secrets
    report: Report
    roll: Callable[[], float]
    backoff: Backoff = field(default_factory=Backoff)
    breaker: BreakerLimits = field(default_factory=BreakerLimits)
    start_s: float = 30.0
    stop_s: float = 5.0


@dataclass(frozen=True, slots=True)
class _Trouble:
    """What went wrong, why, and the soonest time for another try."""

    event: ConnectorEvent
    reason: str
    at_least_s: float | None = None


class Life:
    """One source. :meth:`run` is its supervised task; the rest may be called meanwhile.

    A connector that receives goes on receiving while its successor starts: a webhook that is
    refused then may never come again.
    """

    def __init__(
        self, source: str, offered: ConnectorType, settings: object, parts: LifeParts
    ) -> None:
        self._source = source
        self._offered = offered
        self._settings = settings
        self._parts = parts
        self._state = ConnectorState.LOADING
        self._reason = ""
        self._connector: Connector | None = None
        self._trouble: asyncio.Queue[_Trouble] = asyncio.Queue(maxsize=1)
        self._retry = asyncio.Event()
        self._tried = asyncio.Event()
        self._breaker = Breaker(limits=parts.breaker)
        self._dead = DeadLetters()
        self._ups = 0  # how often it became ready
        self._up = asyncio.Event()

    @property
    def standing(self) -> Standing:
        """Its state now."""
        kind = self._offered.kind
        return Standing(source=self._source, kind=kind, state=self._state, reason=self._reason)

    # -------------------------------------------------------------- its task
    async def run(self) -> None:
        """Start, and start again after trouble, until cancelled; then stop in order."""
        await self._parts.report(self.standing)
        try:
            while True:
                trouble, ran_s = await self._start(), 0.0
                if trouble is None:
                    trouble, ran_s = await self._run()
                self._breaker.failed(trouble.event, ran_s=ran_s)
                await self._move(trouble.event, self._breaker.said(trouble.reason))
                await self._until_next_try(trouble)
                await self._move(machine.Retried(), "")
        finally:
            await self._stop(self._connector)
            self._connector = None
            await self._move(machine.ShutDown(), "")

    async def _run(self) -> tuple[_Trouble, float]:
        """Be ready until trouble comes; return it, and after how long it came."""
        clock = self._parts.world.clock
        began = clock.monotonic()
        await self._move(machine.Started(), "")
        trouble = await self._until_trouble()
        return trouble, clock.monotonic() - began

    async def tried(self) -> None:
        """Return once it has been started, or that went wrong, for the first time."""
        await self._tried.wait()

    async def ready(self, *, beyond: int, within_s: float | None) -> int:
        """Return once it is ready: anew, after *beyond* times, or still, after *within_s*.

        What is returned is how often it has become ready; None waits for the first.
        """
        try:
            async with asyncio.timeout(within_s):
                while self._ups <= beyond:
                    self._up.clear()
                    await self._up.wait()
        except TimeoutError:
            pass  # nothing has happened to it: the schedule says so
        while self._state is not ConnectorState.READY:
            self._up.clear()
            await self._up.wait()
        return self._ups

    def retry(self) -> None:
        """Try again now: somebody renewed the credentials, or says so."""
        self._retry.set()

    async def _start(self) -> _Trouble | None:
        if self._connector and not self._connector.capabilities().receives:
            await self._stop(self._connector)
            self._connector = None
        successor: Connector | None = None

        async def begin() -> None:
            nonlocal successor
            secrets = await self._parts.secrets.fetch(references(self._settings))
            successor = self._offered.make(self._source, self._settings)
            async with asyncio.timeout(self._parts.start_s):
                await successor.start(Context(self._source, self._parts.world, secrets))

        if trouble := await self._trouble_of(begin()):
            await self._stop(successor)
            return trouble
        while not self._trouble.empty():
            self._trouble.get_nowait()  # its predecessor's
        predecessor, self._connector = self._connector, successor
        await self._stop(predecessor)
        return None

    async def _trouble_of(self, work: Awaitable[None]) -> _Trouble | None:
        """Do some of the connector's work; return what went wrong."""
        try:
            await work
        except TimeoutError:
            return _Trouble(NotReady(), "no answer in time")
        except Exception as error:  # noqa: BLE001  # the supervisor: whatever a plugin raises becomes a state
            return self._read(error)
        return None

    async def _until_trouble(self) -> _Trouble:
        """Have the connector listen until something goes wrong, by that or by other work."""
        async with asyncio.TaskGroup() as group:
            hearing = group.create_task(self._hear(), name=f"listen:{self._source}")
            trouble = await self._trouble.get()
            hearing.cancel()
        return trouble

    async def _hear(self) -> None:
        async def listen() -> None:  # whatever it raises, at once or later
            await self._ready_to_hear().listen()

        if trouble := await self._trouble_of(listen()):
            self._tell(trouble)

    async def _until_next_try(self, trouble: _Trouble) -> None:
        """Wait for the backoff; where a person must act, for :meth:`retry` alone."""
        self._retry.clear()
        tries, delay_s = self._breaker.tries, None
        if not isinstance(trouble.event, AuthFailed):
            backoff, roll = self._parts.backoff, self._parts.roll()
            at_least_s = max(trouble.at_least_s or 0.0, self._breaker.rest_s or 0.0)
            delay_s = backoff.delay_s(tries, roll=roll, at_least_s=at_least_s)
        extra = {"source": self._source, "tries": tries, "delay_s": delay_s, "why": trouble.reason}
        log.warning("source.waits", extra=extra)
        try:
            async with asyncio.timeout(delay_s):
                await self._retry.wait()
        except TimeoutError:
            return
        self._breaker.reset()

    async def _stop(self, connector: Connector | None) -> None:
        if connector is None:
            return
        try:
            async with asyncio.timeout(self._parts.stop_s + 1.0):
                await connector.stop(self._parts.stop_s)
        except Exception:
            log.exception("source.stop_failed", extra={"source": self._source})

    async def _move(self, event: ConnectorEvent, reason: str) -> None:
        self._state = machine.step(self._state, event)
        self._reason = reason
        if self._state is ConnectorState.READY:
            self._ups += 1
            self._up.set()
        extra = {"source": self._source, "state": self._state, "why": reason}
        log.info("source.state", extra=extra)
        self._tried.set()
        await self._parts.report(self.standing)

    def _read(self, error: Exception) -> _Trouble:
        match first(error):
            case ConnectorAuthFailedError() as refused:
                return _Trouble(AuthFailed(), str(refused))
            case ConnectorNotReadyError() as gone:
                return _Trouble(NotReady(), str(gone), gone.retry_after_s)
            case _:
                log.error("source.broke", exc_info=error, extra={"source": self._source})
                return _Trouble(Broke(), f"{type(error).__name__}: {error}")

    # -------------------------------------------------------------- its work
    def capabilities(self) -> Capabilities:
        """Say what it can do; before the first start, nothing."""
        return self._connector.capabilities() if self._connector else Capabilities()

    def remarks(self, trigger: Trigger) -> tuple[tuple[str, str], ...]:
        """Return what it knows of another source's trigger; see :mod:`upright.plugin.remarks`."""
        return self._connector.remarks(trigger) if self._connector else ()

    def health(self) -> Health:
        """Say how its ears are; what it can't say itself is no reason to say nothing of others."""
        if self._connector is None:
            return Health()
        try:
            return self._connector.health()
        except Exception:
            log.exception("source.health_broke", extra={"source": self._source})
            return Health()

    async def asked(self, what: str, ask: Callable[[Connector], Awaitable[T]]) -> T:
        """Ask it something; ConnectorNotReadyError when it is not ready, or could not tell."""
        if self._connector is None or self._state is not ConnectorState.READY:
            raise ConnectorNotReadyError(self._not_ready())
        try:
            return await ask(self._connector)
        except ConnectorNotReadyError:
            raise
        except Exception as error:
            if isinstance(error, ConnectorAuthFailedError):
                self._tell(self._read(error))
            else:
                log.exception("source.%s_broke", what, extra={"source": self._source})
            said = f"{type(error).__name__}: {error}"
            raise ConnectorNotReadyError(said) from error

    async def receive(self, request: InboundRequest) -> Sequence[Trigger]:
        """Verify and parse a webhook.

        Raises:
            TriggerRejectedError: it is refused.
            ConnectorNotReadyError: it has never been ready, or is switched off.
            Exception: the connector broke over this request alone: a dead letter, and counted.
        """
        connector = self._ready_to_hear()
        try:
            return await connector.receive(request)
        except ConnectorError:
            raise
        except Exception as error:
            at = self._parts.world.clock.now()
            self._dead = self._dead.with_one(f"{type(error).__name__}: {error}", at)
            raise

    async def validate(self) -> Probe:
        """Look live whether it could work; what goes wrong is the answer, not an error."""
        if self._connector is None:
            return Probe(ok=False, summary=self._not_ready())
        try:
            async with asyncio.timeout(self._parts.start_s):
                return await self._connector.validate()
        except TimeoutError:
            return Probe(ok=False, summary=f"no answer within {self._parts.start_s:g} s")
        except ConnectorError as error:
            return Probe(ok=False, summary=str(error))
        except Exception as error:
            log.exception("source.validate_broke", extra={"source": self._source})
            return Probe(ok=False, summary=f"its check broke: {type(error).__name__}: {error}")

    @property
    def dead(self) -> DeadLetters:
        """What could not be taken in, since the hub was started."""
        return self._dead

    async def send(self, effect: Effect) -> Receipt:
        """Perform an effect.

        Raises:
            ConnectorNotReadyError: not now; nothing was sent.
            ConnectorError: what the connector says of it; an unforeseen error may have sent it.
        """
        if self._connector is None or self._state is not ConnectorState.READY:
            raise ConnectorNotReadyError(self._not_ready())
        try:
            return await self._connector.send(effect)
        except (ConnectorNotReadyError, ConnectorAuthFailedError) as error:
            self._tell(self._read(error))
            if isinstance(error, ConnectorNotReadyError):
                raise
            raise ConnectorNotReadyError(str(error)) from error
        except ConnectorError:
            raise
        except Exception as error:
            log.exception("source.send_broke", extra={"source": self._source, "effect": effect.id})
            said = f"{type(error).__name__}: {error}"
            raise UnknownSendError(said) from error

    async def backfill(self, since: str | None, until: datetime) -> AsyncIterator[Trigger]:
        """Yield what was missed, oldest first; trouble moves its state, and ends the listing.

        Raises:
            ConnectorNotReadyError: it is not ready, or could not go on.
        """
        if self._connector is None or self._state is not ConnectorState.READY:
            raise ConnectorNotReadyError(self._not_ready())
        listing = self._connector.backfill(since, until)
        while True:
            try:
                trigger = await anext(listing)
            except StopAsyncIteration:
                return
            except Exception as error:
                self._tell(self._read(error))
                raise ConnectorNotReadyError(str(error)) from error
            yield trigger

    def _ready_to_hear(self) -> Connector:
        if self._connector is None:
            raise ConnectorNotReadyError(self._not_ready())
        return self._connector

    def _not_ready(self) -> str:
        why = f": {self._reason}" if self._reason else ""
        return f"the source {self._source} is {self._state.value}{why}"

    def _tell(self, trouble: _Trouble) -> None:
        if not self._trouble.full():
            self._trouble.put_nowait(trouble)
