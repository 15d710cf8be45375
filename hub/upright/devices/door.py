"""The door: what happens on a device's socket from the challenge to the end (E2)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import ClassVar, Final

from upright.devices.identity import HubIdentity, RandomBytes, one_time, verify
from upright.devices.link import DeviceLink, LinkTimes
from upright.devices.links import Links
from upright.devices.pairing import Caller, Pairings
from upright.devices.ports import DeviceState, Inbound, KnownDevice, Roster, Sighting
from upright.devices.transport import GoneError, Transport
from upright.engine.ports import Clock
from upright.engine.rate import Rate
from upright_wire.errors import AuthError, FrameError, WireError
from upright_wire.frames import (
    MAX_FIRST_BYTES,
    PROTO,
    Challenge,
    CloseCode,
    Hello,
    Limits,
    Message,
    PairCommit,
    PairResume,
    Problem,
    Side,
    Welcome,
)
from upright_wire.handshake import (
    Greeting,
    OneTime,
    check_hello,
    link_keys,
    sign_welcome,
)
from upright_wire.session import Phase, Session

log = logging.getLogger(__name__)

HANDSHAKE_S: Final = 10.0
LINES_PER_MINUTE: Final = 10  # of the log, for each address
MOST_UNSAID: Final = 4096  # addresses
LINK_NAME_BYTES: Final = 8
MAX_HELLO_CAPS: Final = 64


class TurnedAwayError(Exception):
    """This device may not link now."""

    code: ClassVar[CloseCode] = CloseCode.NOT_APPROVED


class RevokedError(TurnedAwayError):
    """This device's right was taken away."""

    code = CloseCode.REVOKED


class SlowDownError(TurnedAwayError):
    """This address tries too often."""

    code = CloseCode.SLOW_DOWN

    def __init__(self, retry_after_s: float) -> None:
        super().__init__()
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorParts:
    """What the door needs. ``hosts`` are the names (with port, as dialled) that are this hub's.

    ``serve`` makes the ``Inbound`` for a link; it is called before the link is run.
    """

    identity: HubIdentity
    roster: Roster
    pairings: Pairings
    links: Links
    clock: Clock
    random_bytes: RandomBytes
    hosts: Collection[str]
    serve: Callable[[DeviceLink], Inbound]
    failures: Rate
    requests: Rate
    times: LinkTimes = field(default_factory=LinkTimes)
    handshake_s: float = HANDSHAKE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    transport: Transport
    remote: str
    session: Session
    mine: OneTime
    challenge: Challenge


class Door:
    """Lets devices in, or tells them why not."""

    def __init__(self, parts: DoorParts) -> None:
        self._parts = parts
        self._lines = Rate(clock=parts.clock, tries=LINES_PER_MINUTE, window_s=60.0)
        self._unsaid: Counter[str] = Counter()

    async def serve(self, transport: Transport, *, remote: str) -> None:
        """Serve one socket to its end; *remote* is the far address, for limits and for people.

        Returns when the socket is closed. Errors of the store, or of ``Inbound``, come out.
        """
        try:
            link = await self._enter(transport, remote)
            if link is not None:  # what only the handshake needed is gone by now
                await self._live(link)
        finally:
            transport.abort()

    async def _enter(self, transport: Transport, remote: str) -> DeviceLink | None:
        """Return the link of a device that proved who it is; everybody else was answered."""
        visit = self._visit(transport, remote)
        try:
            return await self._answer(visit)
        except GoneError:
            self._say("door.gone", remote, "")
        except TimeoutError:
            self._parts.failures.count(remote)
            self._say("door.too_slow", remote, "")
        except WireError as error:
            self._parts.failures.count(remote)
            self._say("door.refused", remote, str(error)[:300])
            await self._close(transport, CloseCode.PROTOCOL, error.code)
        except TurnedAwayError as error:
            self._say("door.turned_away", remote, str(int(error.code)))
            await self._turn_away(visit, error)
        return None

    def _say(self, event: str, remote: str, reason: str) -> None:
        """Log what happened at the door; a flood from one address is counted, not written down."""
        if self._lines.wait_s(remote) > 0:
            if len(self._unsaid) < MOST_UNSAID:
                self._unsaid[remote] += 1
            return
        self._lines.count(remote)
        unsaid = self._unsaid.pop(remote, 0)
        log.warning(event, extra={"remote": remote, "reason": reason, "unsaid": unsaid})

    def _visit(self, transport: Transport, remote: str) -> _Visit:
        identity, mine = self._parts.identity, one_time(self._parts.random_bytes)
        challenge = Challenge(
            hub_id=identity.hub_id,
            hub_key_id=identity.key_id,
            nonce=mine.nonce,
            eph=mine.eph,
        )
        session = Session(Side.HUB)
        return _Visit(
            transport=transport, remote=remote, session=session, mine=mine, challenge=challenge
        )

    async def _answer(self, visit: _Visit) -> DeviceLink | None:
        wait_s = self._parts.failures.wait_s(visit.remote)
        if wait_s > 0:
            raise SlowDownError(wait_s)
        async with asyncio.timeout(self._parts.handshake_s) as bound:
            await visit.transport.send(visit.session.send(visit.challenge))
            first = await _first(visit)
            if isinstance(first, Hello):
                link = await self._welcome(visit, first)
                visit.transport.admitted()
                return link
            await self._pair(visit, first, bound)
        return None

    # -------------------------------------------------------------- known devices
    async def _welcome(self, visit: _Visit, hello: Hello) -> DeviceLink:
        parts = self._parts
        device = await self._believe(visit, hello)
        greeting = Greeting(
            challenge=visit.challenge,
            hello=hello,
            hub_key=parts.identity.public_key,
            device_key=device.public_key,
        )
        keys = link_keys(greeting, visit.mine.agree(hello.eph))
        granted = tuple(cap for cap in hello.caps if cap in device.caps)
        times = parts.times
        welcome = Welcome(
            link=parts.random_bytes(LINK_NAME_BYTES).hex(),
            proto=PROTO,
            caps=granted,
            limits=Limits(ping_ms=int(times.ping_s * 1000), dead_ms=int(times.dead_s * 1000)),
        )
        signed = sign_welcome(greeting, welcome, parts.identity.sign)
        await parts.roster.seen(
            Sighting(
                device_id=device.id,
                remote=visit.remote,
                boot_id=hello.boot_id,
                os_boot_id=hello.os_boot_id,
                wider_caps=tuple(cap for cap in hello.caps if cap not in device.caps),
            )
        )
        await visit.transport.send(visit.session.send(signed))
        visit.session.arm(keys)
        return DeviceLink(device.id, visit.session, visit.transport, parts.clock, times=times)

    async def _believe(self, visit: _Visit, hello: Hello) -> KnownDevice:
        """Return the device that this hello proves; what it says counts only after that."""
        parts = self._parts
        if len(hello.caps) > MAX_HELLO_CAPS or hello.host not in parts.hosts:
            raise AuthError(host=hello.host[:100], expected=", ".join(sorted(parts.hosts)))
        device = await parts.roster.device(hello.device_id)
        if device is None:
            parts.failures.count(visit.remote)
            raise TurnedAwayError
        greeting = Greeting(
            challenge=visit.challenge,
            hello=hello,
            hub_key=parts.identity.public_key,
            device_key=device.public_key,
        )
        check_hello(greeting, verify)
        if device.state is DeviceState.REVOKED:
            raise RevokedError
        return device

    async def _live(self, link: DeviceLink) -> None:
        links = self._parts.links
        links.enter(link)
        # it may have been revoked between the look and the entry: then nobody else would cut it
        device = await self._parts.roster.device(link.device_id)
        if device is None or device.state is DeviceState.REVOKED:
            links.revoke(link.device_id)
        if links.is_clone_suspected(link.device_id):
            await self._parts.roster.suspect(link.device_id)
        log.info("link.up", extra={"device": link.device_id})
        try:
            end = await link.run(self._parts.serve(link))
            log.info(
                "link.down",
                extra={"device": link.device_id, "code": end.code, "reason": end.reason},
            )
        finally:
            links.leave(link)

    # -------------------------------------------------------------- devices that want to be known
    async def _pair(self, visit: _Visit, first: Message, bound: asyncio.Timeout) -> None:
        caller = Caller(
            transport=visit.transport,
            session=visit.session,
            challenge=visit.challenge,
            remote=visit.remote,
            hosts=self._parts.hosts,
        )
        if (wait_s := self._parts.requests.wait_s(visit.remote)) > 0:
            raise SlowDownError(wait_s)
        self._parts.requests.count(visit.remote)
        match first:
            case PairCommit():
                pairing = await self._parts.pairings.begin(caller, first)
            case PairResume():
                pairing = await self._parts.pairings.resume(caller, first)
            case _:
                raise FrameError(type=first.TYPE, expected="hello or pair_commit")
        bound.reschedule(None)
        verdict = await self._parts.pairings.attend(caller, pairing)
        log.info("pairing.settled", extra={"request": pairing.id, "verdict": verdict.value})
        await self._close(visit.transport, CloseCode.NORMAL, verdict.value)

    # -------------------------------------------------------------- farewells
    async def _turn_away(self, visit: _Visit, error: TurnedAwayError) -> None:
        if isinstance(error, SlowDownError):
            await self._ask_for_patience(visit, error.retry_after_s)
        await self._close(visit.transport, error.code, type(error).__name__)

    async def _ask_for_patience(self, visit: _Visit, retry_after_s: float) -> None:
        problem = Problem(code="device.slow_down", retry_after_ms=int(retry_after_s * 1000))
        is_new = visit.session.phase is Phase.OPEN
        messages: tuple[Message, ...] = (visit.challenge, problem) if is_new else (problem,)
        try:
            async with asyncio.timeout(self._parts.times.close_s):
                for message in messages:
                    await visit.transport.send(visit.session.send(message))
        except (TimeoutError, GoneError):
            log.info("door.gone", extra={"remote": visit.remote})

    async def _close(self, transport: Transport, code: CloseCode, reason: str) -> None:
        try:
            async with asyncio.timeout(self._parts.times.close_s):
                await transport.close(code, reason)
        except (TimeoutError, GoneError):
            log.info("door.close_cut_short", extra={"code": int(code)})


async def _first(visit: _Visit) -> Message:
    frame = await visit.transport.receive()
    if isinstance(frame, bytes) or len(frame) > MAX_FIRST_BYTES:
        raise FrameError(first=type(frame).__name__, bytes=len(frame), max_bytes=MAX_FIRST_BYTES)
    message = visit.session.receive(frame)
    if message is None:
        raise FrameError(expected="hello")
    return message
