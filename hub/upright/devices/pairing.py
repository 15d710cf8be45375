"""Pairing on the hub: the conversation with a device, and the person's decision (E1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar, Final

from upright.core.ids import DeviceId, RequestId
from upright.core.request import RequestState
from upright.devices.identity import HubIdentity, RandomBytes, verify
from upright.devices.ports import Approval, Pairing, PairingStore
from upright.devices.transport import GoneError, Transport
from upright.engine.ports import Clock, IdSource
from upright_wire import pairing as wire
from upright_wire.errors import AuthError, FrameError, IllegalMoveError
from upright_wire.frames import (
    Challenge,
    Message,
    PairCommit,
    PairOffer,
    PairPending,
    PairResult,
    PairResume,
    PairReveal,
    PairVerdict,
    Ping,
    Pong,
)
from upright_wire.handshake import NONCE_BYTES
from upright_wire.session import Session

MAX_CAPS: Final = 64


class PairingError(Exception):
    """The pairing was not approved; ``code`` for machines."""

    code: ClassVar[str] = "pairing.failed"

    def __init__(self) -> None:
        super().__init__((type(self).__doc__ or self.code).splitlines()[0])


class UnknownCodeError(PairingError):
    """No device waits under this code; look at its screen again, it may have expired."""

    code = "pairing.unknown_code"


class ChangedError(PairingError):
    """The request is not the one that was shown; look again."""

    code = "pairing.changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingParts:
    """What pairing needs; ``below(n)`` is a uniform random number from 0 to n - 1.

    ``poll_s`` is how soon a waiting device learns the decision, ``dead_s`` when it counts as gone.
    """

    identity: HubIdentity
    store: PairingStore
    clock: Clock
    ids: IdSource
    random_bytes: RandomBytes
    below: Callable[[int], int]
    poll_s: float = 0.5
    dead_s: float = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The device's side of a pairing: its socket, its session, what it was challenged with.

    ``hosts`` are the names under which it may have dialled.
    """

    transport: Transport
    session: Session
    challenge: Challenge
    remote: str
    hosts: Collection[str]


class Pairings:
    """Pairing requests of this hub."""

    def __init__(self, parts: PairingParts) -> None:
        self._parts = parts

    # -------------------------------------------------------------- the person
    async def waiting(self) -> tuple[Pairing, ...]:
        """Return the requests that can be approved now."""
        now = self._parts.clock.now()
        return tuple(p for p in await self._parts.store.asked() if p.expires_at > now)

    async def look(self, code: str) -> Pairing:
        """Return the request with this code, to be shown; a wrong code counts as a guess.

        Raises:
            UnknownCodeError: there is none.
        """
        typed = wire.read_code(code) or ""
        found = None
        for pairing in await self.waiting():  # to the end, whatever is found: constant time
            if wire.is_same_code(pairing.code, typed):
                found = pairing
        if found is None:
            await self._count_wrong_guess()
            raise UnknownCodeError
        return found

    async def approve(
        self, shown: Pairing, *, by: str, granted: tuple[str, ...] | None = None
    ) -> Approval:
        """Pair the device: exactly the request that was shown, with some or all of its caps.

        Raises:
            ChangedError: it was answered, withdrawn or expired meanwhile, or is another one.
        """
        caps = shown.caps if granted is None else tuple(c for c in shown.caps if c in granted)
        approval = Approval(
            request_id=shown.id,
            bound_hash=shown.bound_hash,
            device_id=DeviceId(self._parts.ids.new("device")),
            granted=caps,
            by=by,
        )
        expired = shown.expires_at <= self._parts.clock.now()
        if expired or not await self._parts.store.approve(approval):
            raise ChangedError
        return approval

    async def deny(self, request_id: str, *, by: str) -> None:
        """Say no."""
        await self._parts.store.settle(request_id, RequestState.ANSWERED, by=by)

    async def _count_wrong_guess(self) -> None:
        await self._parts.store.count_wrong_guess()
        for pairing in await self._parts.store.asked():
            if pairing.wrong_guesses >= wire.MAX_WRONG_GUESSES:
                await self._parts.store.settle(pairing.id, RequestState.EXPIRED)

    # -------------------------------------------------------------- the device
    async def begin(self, caller: Caller, commit: PairCommit) -> Pairing:
        """Lead the conversation from the commitment to a stored request; the caller bounds it.

        Raises:
            WireError: the device breaks the protocol, or does not hold its key.
            GoneError: it is gone.
        """
        parts = self._parts
        nonce = parts.random_bytes(NONCE_BYTES)
        offer = PairOffer(hub_key=parts.identity.public_key, nonce=nonce)
        await caller.transport.send(caller.session.send(offer))
        reveal = _text_message(caller, await caller.transport.receive())
        if not isinstance(reveal, PairReveal) or len(reveal.caps) > MAX_CAPS:
            raise FrameError(expected=PairReveal.TYPE, max_caps=MAX_CAPS)
        opened = wire.Opened(challenge=caller.challenge, commit=commit, offer=offer, reveal=reveal)
        wire.check_opened(opened, verify)
        if reveal.host not in caller.hosts:  # somebody passes our words on under another name
            raise AuthError(host=reveal.host[:100], expected=", ".join(sorted(caller.hosts)))
        pairing = Pairing(
            id=RequestId(parts.ids.new("request")),
            code=await self._unused_code(),
            digits=wire.digits(opened),
            bound_hash=wire.request_hash(opened),
            device_key=reveal.device_key,
            host=reveal.host,
            remote=caller.remote,
            caps=reveal.caps,
            facts=reveal.facts,
            expires_at=parts.clock.now() + timedelta(milliseconds=wire.REQUEST_TTL_MS),
        )
        await parts.store.add(pairing)
        return pairing

    async def resume(self, caller: Caller, resume: PairResume) -> Pairing:
        """Return the request of a device that comes back on a new socket.

        Raises:
            AuthError: it is not that device's, or there is none.
        """
        pairing = await self._parts.store.find(resume.request)
        if pairing is None or pairing.device_key != resume.device_key:
            raise AuthError(pairing="no such request")
        signed = wire.resume_bytes(caller.challenge, resume)
        wire.check_signed(resume.device_key, resume.sig, signed, verify)
        return pairing

    async def attend(self, caller: Caller, pairing: Pairing) -> PairVerdict:
        """Show the device its code, wait with it for the decision, and tell it; bounded by expiry.

        Raises:
            WireError: the device breaks the protocol.
            GoneError: it is gone; it may resume.
        """
        current = await self._current(pairing)
        if current.state is RequestState.ASKED:
            await caller.transport.send(caller.session.send(self._pending(current)))
            current = await self._wait_beside(caller, current)
        result = self._result(current)
        await caller.transport.send(caller.session.send(result))
        return result.verdict

    async def _wait_beside(self, caller: Caller, pairing: Pairing) -> Pairing:
        """Answer the device's pings until there is a decision; it may be made at another hub."""
        clock = self._parts.clock
        heard_at = clock.monotonic()
        while (current := await self._current(pairing)).state is RequestState.ASKED:
            try:
                async with asyncio.timeout(self._parts.poll_s):
                    frame = await caller.transport.receive()
            except TimeoutError:
                if clock.monotonic() - heard_at >= self._parts.dead_s:
                    raise GoneError from None
                continue
            heard_at = clock.monotonic()
            message = _text_message(caller, frame)
            if isinstance(message, Ping):
                await caller.transport.send(caller.session.send(Pong(number=message.number)))
        return current

    async def _current(self, pairing: Pairing) -> Pairing:
        """Return the request as it is now; one that is past its time is settled on the way."""
        current = await self._parts.store.find(pairing.id) or pairing
        if current.state is not RequestState.ASKED:
            return current
        if current.expires_at > self._parts.clock.now():
            return current
        await self._parts.store.settle(pairing.id, RequestState.EXPIRED)
        return replace(current, state=RequestState.EXPIRED)

    async def _unused_code(self) -> str:
        used = {pairing.code for pairing in await self._parts.store.asked()}
        while (code := wire.draw_code(self._parts.below)) in used:
            pass
        return code

    def _pending(self, pairing: Pairing) -> PairPending:
        left = pairing.expires_at - self._parts.clock.now()
        pending = PairPending(
            request=pairing.id,
            code=pairing.code,
            expires_ms=max(0, int(left.total_seconds() * 1000)),
        )
        signed = wire.pending_bytes(pending, pairing.bound_hash)
        return replace(pending, sig=self._parts.identity.sign(signed))

    def _result(self, pairing: Pairing) -> PairResult:
        verdict = PairVerdict.EXPIRED
        if pairing.state is RequestState.ANSWERED:
            verdict = PairVerdict.APPROVED if pairing.device_id else PairVerdict.DENIED
        is_in = verdict is PairVerdict.APPROVED
        result = PairResult(
            request=pairing.id,
            verdict=verdict,
            device_id=pairing.device_id if is_in else "",
            caps=pairing.granted if is_in else (),
        )
        signed = wire.result_bytes(result, pairing.bound_hash)
        return replace(result, sig=self._parts.identity.sign(signed))


def _text_message(caller: Caller, frame: str | bytes) -> Message | None:
    if isinstance(frame, bytes):
        raise IllegalMoveError(phase=caller.session.phase, event="data")
    return caller.session.receive(frame)
