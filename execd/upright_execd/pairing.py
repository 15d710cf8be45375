"""Pairing on the device: what ``execd pair HUB`` does, from commitment to pinned hub (E1)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from upright_execd.address import HubAddress
from upright_execd.conversation import Link, Times
from upright_execd.errors import ExecdError
from upright_execd.keys import DeviceKey, verify
from upright_execd.link import SlowDownError, expect, next_message
from upright_execd.pinned import Pinned
from upright_execd.redial import Uniform
from upright_execd.socket import GoneError, Socket, dial
from upright_wire import pairing as wire
from upright_wire.errors import AuthError, FrameError, IllegalMoveError, WireError
from upright_wire.frames import (
    Challenge,
    CloseCode,
    Facts,
    PairCommit,
    PairOffer,
    PairPending,
    PairResult,
    PairResume,
    PairReveal,
    PairVerdict,
    Ping,
    Side,
)
from upright_wire.handshake import NONCE_BYTES, check_challenge
from upright_wire.session import Session


class PairingError(ExecdError):
    """This machine was not paired."""

    code: ClassVar[str] = "execd.pairing"
    exit_code = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the person compares with the hub's page: ``code`` as it is read aloud, and digits."""

    code: str
    digits: str
    hub_id: str
    hub_key_id: str
    expires_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairParts:
    """What pairing needs. ``show`` tells the person what to compare, once per request.

    ``approve`` blocks while it approves what was shown, where no person is asked (E1.6).
    """

    address: HubAddress
    key: DeviceKey
    caps: tuple[str, ...]
    facts: Facts
    times: Times
    uniform: Uniform
    show: Callable[[Shown], None]
    approve: Callable[[Shown], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that is made: what binds it, and whose signature counts from here on."""

    request: str
    bound_hash: str
    hub_id: str
    hub_key: bytes


async def pair(parts: PairParts) -> Pinned:
    """Ask the hub to be paired, wait for the person's approval, and return what is to be pinned.

    A broken connection is taken up again on the same request, no sooner than after 30 s.

    Raises:
        PairingError: denied, expired, or the hub can't be reached or believed.
    """
    clock, intervals = parts.times.clock, parts.times.intervals
    waiting = _Waiting()
    until = clock.monotonic() + wire.REQUEST_TTL_MS / 1000
    while True:
        try:
            return _pinned(parts, await _once(parts, waiting), waiting)
        except WireError as error:
            sentence = f"{parts.address.host} can't be believed: {error}."
            raise PairingError(sentence) from error
        except (GoneError, TimeoutError, SlowDownError) as error:
            reason = str(error) or "it does not answer"
            if waiting.asked is None:
                sentence = f"{parts.address.host}: {reason}."
                raise PairingError(sentence) from error
            if clock.monotonic() >= until:
                raise PairingError("Nobody approved it in time.", advice=_AGAIN) from error
            least = intervals.not_approved_s
            await clock.sleep(parts.uniform(least, 2 * least))


@dataclass(slots=True)
class _Waiting:
    """What outlives a broken connection."""

    asked: Asked | None = None


async def _once(parts: PairParts, waiting: _Waiting) -> PairResult:
    intervals = parts.times.intervals
    socket = await dial(parts.address, open_s=intervals.open_s)
    try:
        session = Session(Side.DEVICE)
        async with asyncio.timeout(intervals.handshake_s):
            result = await _request(socket, session, parts, waiting)
        if result is None:
            result = await _wait(socket, session, parts)
        if waiting.asked is None:
            raise IllegalMoveError(got=PairResult.TYPE)
        _check_result(result, waiting.asked)
        await socket.close(CloseCode.NORMAL, within_s=intervals.close_s)
        return result
    finally:
        socket.abort()


async def _request(
    link: Link, session: Session, parts: PairParts, waiting: _Waiting
) -> PairResult | None:
    """Make the request, or come back to it; None: it waits for a person."""
    if waiting.asked is not None:
        return await resume(link, session, parts, waiting.asked)
    waiting.asked, shown = await ask(link, session, parts)
    parts.show(shown)
    if parts.approve is not None:
        await asyncio.to_thread(parts.approve, shown)
    return None


async def ask(link: Link, session: Session, parts: PairParts) -> tuple[Asked, Shown]:
    """Commit, reveal, and learn the code.

    Raises:
        WireError: the hub breaks the protocol, or does not hold the key that it offers.
        GoneError: it hung up.
    """
    challenge = await expect(link, session, Challenge)
    draft = PairReveal(
        device_key=parts.key.public,
        nonce=os.urandom(NONCE_BYTES),
        host=parts.address.host,
        caps=parts.caps,
        facts=parts.facts,
    )
    commit = PairCommit(commitment=wire.commitment(draft))
    await link.send(session.send(commit))
    offer = await expect(link, session, PairOffer)
    wire.check_offer(challenge, offer)
    opened = wire.Opened(challenge=challenge, commit=commit, offer=offer, reveal=draft)
    await link.send(session.send(wire.sign_reveal(opened, parts.key.sign)))
    pending = await expect(link, session, PairPending)
    asked = Asked(
        request=pending.request,
        bound_hash=wire.request_hash(opened),
        hub_id=challenge.hub_id,
        hub_key=offer.hub_key,
    )
    _check_pending(pending, asked)
    code = wire.read_code(pending.code)
    if code is None:
        raise FrameError(code="malformed")
    return asked, Shown(
        code=wire.show_code(code),
        digits=wire.digits(opened),
        hub_id=challenge.hub_id,
        hub_key_id=challenge.hub_key_id,
        expires_s=pending.expires_ms / 1000,
    )


async def resume(link: Link, session: Session, parts: PairParts, asked: Asked) -> PairResult | None:
    """Come back to a request on a new socket; None: it still waits.

    Raises:
        WireError: it is another hub, or breaks the protocol.
        GoneError: it hung up.
    """
    challenge = await expect(link, session, Challenge)
    check_challenge(challenge, hub_id=asked.hub_id, hub_key=asked.hub_key)
    draft = PairResume(request=asked.request, device_key=parts.key.public)
    signed = wire.resume_bytes(challenge, draft)
    await link.send(session.send(replace(draft, sig=parts.key.sign(signed))))
    message = await next_message(link, session)
    if isinstance(message, PairResult):
        return message
    if not isinstance(message, PairPending):
        raise IllegalMoveError(got=message.TYPE, expected=PairPending.TYPE)
    _check_pending(message, asked)
    return None


async def _wait(socket: Socket, session: Session, parts: PairParts) -> PairResult:
    """Wait for the decision; ping, so that a dead hub is noticed."""
    number, intervals = 0, parts.times.intervals
    while True:
        try:
            async with asyncio.timeout(intervals.ping_s):
                return await expect(socket, session, PairResult)
        except TimeoutError:
            if socket.silent_s() >= intervals.dead_s:
                raise GoneError("the hub is silent") from None
            number += 1
            await socket.send(session.send(Ping(number=number)))


def _check_pending(pending: PairPending, asked: Asked) -> None:
    if pending.request != asked.request:
        raise AuthError(request=pending.request[:64], expected=asked.request)
    signed = wire.pending_bytes(pending, asked.bound_hash)
    wire.check_signed(asked.hub_key, pending.sig, signed, verify)


def _check_result(result: PairResult, asked: Asked) -> None:
    if result.request != asked.request:
        raise AuthError(request=result.request[:64], expected=asked.request)
    signed = wire.result_bytes(result, asked.bound_hash)
    wire.check_signed(asked.hub_key, result.sig, signed, verify)


_AGAIN = "Run it again for a new code."


def _pinned(parts: PairParts, result: PairResult, waiting: _Waiting) -> Pinned:
    asked = waiting.asked
    match result.verdict:
        case PairVerdict.DENIED:
            raise PairingError("The request was denied on the hub.")
        case PairVerdict.EXPIRED:
            raise PairingError("Nobody approved it in time.", advice=_AGAIN)
        case PairVerdict.APPROVED if asked is not None and result.device_id:
            return Pinned(
                url=parts.address.url,
                host=parts.address.host,
                hub_id=asked.hub_id,
                hub_key=asked.hub_key,
                device_id=result.device_id,
            )
        case _:
            raise PairingError("The hub approved it without a name for this device.")
