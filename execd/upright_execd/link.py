"""The link: dial, shake hands, converse, and dial again, for as long as this device is paired."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from upright_execd.address import HubAddress
from upright_execd.conversation import Conversation, Link, Times
from upright_execd.keys import DeviceKey, one_time, verify
from upright_execd.pinned import Pinned
from upright_execd.ports import Commands
from upright_execd.redial import LinkEnd, Redial, Uniform
from upright_execd.socket import GoneError, Socket, dial
from upright_wire.errors import AuthError, IllegalMoveError, WireError
from upright_wire.frames import (
    PROTO,
    Challenge,
    CloseCode,
    Hello,
    Message,
    Ping,
    Pong,
    Problem,
    Side,
    Welcome,
)
from upright_wire.handshake import (
    Greeting,
    check_challenge,
    check_welcome,
    link_keys,
    sign_hello,
)
from upright_wire.session import Session

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)


class LinkState(StrEnum):
    """What the link is doing."""

    WAITING = "waiting"
    DIALLING = "dialling"
    ONLINE = "online"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStatus:
    """The link for people: ``reason`` is why it is not online; ``next_try_s`` when it tries."""

    state: LinkState
    reason: str = ""
    link: str = ""
    next_try_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """What this device says of itself in its hello."""

    key: DeviceKey
    pinned: Pinned
    caps: tuple[str, ...]
    boot_id: str
    os_boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkParts:
    """What the link needs."""

    me: Me
    commands: Commands
    times: Times
    uniform: Uniform


class HubLink:
    """The link to the pinned hub. ``run`` never gives up but when the hub says "revoked"."""

    def __init__(self, parts: LinkParts, on_status: Callable[[LinkStatus], None]) -> None:
        self._parts = parts
        self._on_status = on_status
        self._redial = Redial(intervals=parts.times.intervals, uniform=parts.uniform)
        self.status = LinkStatus(state=LinkState.WAITING)

    async def run(self) -> LinkEnd:
        """Keep the link up; returns only when this device is revoked."""
        while True:
            self._show(LinkStatus(state=LinkState.DIALLING, reason=self.status.reason))
            end = await self._once()
            log.info("link.ended", extra={"reason": end.reason[:300], "code": end.code})
            wait_s = self._redial.wait_s(end)
            if wait_s is None:
                self._show(LinkStatus(state=LinkState.REVOKED, reason=end.reason))
                return end
            self._show(LinkStatus(state=LinkState.WAITING, reason=end.reason, next_try_s=wait_s))
            await self._wait(wait_s)

    async def _once(self) -> LinkEnd:
        """Dial and serve one socket."""
        times, pinned = self._parts.times, self._parts.me.pinned
        try:
            address = HubAddress(url=pinned.url, host=pinned.host)
            socket = await dial(address, open_s=times.intervals.open_s)
        except GoneError as error:
            return LinkEnd(reason=error.reason, code=error.code)
        try:
            return await self._serve(socket)
        except GoneError as error:
            return LinkEnd(reason=error.reason, code=error.code)
        except TimeoutError:
            return LinkEnd(reason="the hub did not finish the handshake")
        except WireError as error:
            log.warning("link.refused", extra={"code": error.code, "reason": str(error)[:300]})
            await socket.close(CloseCode.PROTOCOL, within_s=times.intervals.close_s)
            return LinkEnd(reason=str(error), code=CloseCode.PROTOCOL)
        finally:
            socket.abort()

    async def _serve(self, socket: Socket) -> LinkEnd:
        session = Session(Side.DEVICE)
        try:
            async with asyncio.timeout(self._parts.times.intervals.handshake_s):
                welcome = await shake_hands(socket, session, self._parts.me)
        except SlowDownError as error:
            reason = "the hub asks for patience"
            return LinkEnd(
                reason=reason, code=CloseCode.SLOW_DOWN, retry_after_s=error.retry_after_s
            )
        self._show(LinkStatus(state=LinkState.ONLINE, link=welcome.link))
        conversation = Conversation(
            socket,
            session,
            self._parts.commands,
            times=self._parts.times,
            limits=welcome.limits,
        )
        end = await conversation.run()
        if end.code is CloseCode.PROTOCOL:
            await socket.close(end.code, within_s=self._parts.times.intervals.close_s)
        return end

    async def _wait(self, wait_s: float) -> None:
        """Wait, but not after the machine has slept: then the network is new, and we are late."""
        times = self._parts.times
        drift = times.drift()
        while wait_s > 0 and times.drift() - drift <= times.intervals.look_s:
            step_s = min(wait_s, times.intervals.look_s)
            await times.clock.sleep(step_s)
            wait_s -= step_s

    def _show(self, status: LinkStatus) -> None:
        self.status = status
        self._on_status(status)


class SlowDownError(Exception):
    """The hub wants fewer tries."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"try again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


async def shake_hands(link: Link, session: Session, me: Me) -> Welcome:
    """Prove who we are to the pinned hub, and believe it only after it has proved the same.

    Raises:
        WireError: it is another hub, or breaks the protocol.
        SlowDownError: it wants fewer tries.
        GoneError: it hung up, with the code that says why.
    """
    challenge = await expect(link, session, Challenge)
    check_challenge(challenge, hub_id=me.pinned.hub_id, hub_key=me.pinned.hub_key)
    mine = one_time()
    hello = Hello(
        device_id=me.pinned.device_id,
        host=me.pinned.host,
        nonce=mine.nonce,
        eph=mine.eph,
        boot_id=me.boot_id,
        os_boot_id=me.os_boot_id,
        caps=me.caps,
        proto=(PROTO, PROTO),
    )
    greeting = Greeting(
        challenge=challenge,
        hello=hello,
        hub_key=me.pinned.hub_key,
        device_key=me.key.public,
    )
    greeting = sign_hello(greeting, me.key.sign)
    await link.send(session.send(greeting.hello))
    welcome = await expect(link, session, Welcome)
    check_welcome(greeting, welcome, verify)
    session.arm(link_keys(greeting, mine.agree(challenge.eph)))
    return replace(welcome, sig=b"")


async def next_message(link: Link, session: Session) -> Message:
    """Return the next message of a handshake or pairing; pings and pongs are passed over.

    Raises:
        WireError: the hub breaks the protocol.
        SlowDownError: it says that we come too often.
        GoneError: it hung up.
    """
    while True:
        frame = await link.receive()
        if isinstance(frame, bytes):
            raise IllegalMoveError(phase=session.phase, event="data")
        match session.receive(frame):
            case None | Ping() | Pong():
                pass
            case Problem(code=code, retry_after_ms=after_ms):
                if after_ms is None:
                    raise AuthError(hub_says=code[:64])
                raise SlowDownError(after_ms / 1000)
            case message:
                return message


async def expect(link: Link, session: Session, kind: type[M]) -> M:
    """Return the next message, which must be of this kind. Raises as ``next_message`` does."""
    message = await next_message(link, session)
    if not isinstance(message, kind):
        raise IllegalMoveError(got=message.TYPE, expected=kind.TYPE)
    return message
