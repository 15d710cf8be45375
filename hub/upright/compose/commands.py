"""Commands: what a signed-in person may do; fills ``web.parts.Commands``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from upright.core.ids import DeviceId, SessionId
from upright.devices.links import Links
from upright.devices.pairing import ChangedError, Pairings
from upright.devices.ports import Pairing
from upright.engine.clock import now_ms
from upright.engine.units import Units
from upright.plugin.connectors import Connectors
from upright.store import acting, approvals, devices, people
from upright.store.errors import UnknownIdError
from upright.store.unit import Unit
from upright.web.parts import RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandParts:
    """What commands work with."""

    units: Units
    pairings: Pairings
    links: Links
    connectors: Connectors
    woken: Callable[[Collection[SessionId]], None]
    send: Callable[[], None]
    push: Callable[[Collection[DeviceId]], None]


class HubCommands:
    """Every command returns after its commit."""

    def __init__(self, parts: CommandParts) -> None:
        self._parts = parts

    async def say(self, session: str, text: str, kind: str) -> object:
        """Tell a session something, as the operator; *kind* says how it is meant (B9)."""
        said = await self._parts.units.write(lambda u: people.say(u, session, text, kind))
        self._parts.woken([SessionId(session)])
        return {"session": session, "trigger": said, "said": True}

    async def answer(self, request: str, text: str) -> object:
        """Answer a question."""
        woken = await self._parts.units.write(lambda u: people.answer(u, request, text, u.by))
        self._parts.woken([woken] if woken else [])
        return {"request": request, "answered": True}

    async def decide(self, request: str, *, approve: bool, digest: str = "") -> object:
        """Approve or deny exactly what was asked, and seen under this digest.

        A yes about a device lets its commands leave.
        """

        def unit(u: Unit) -> tuple[DeviceId | None, SessionId | None]:
            about = people.decide_device(u, request, u.by, approve=approve)
            if about is not None:
                return about, None
            return None, people.decide(u, request, u.by, approve=approve, digest=digest)

        device, woken = await self._parts.units.write(unit)
        if device is not None:
            if approve:
                self._parts.links.clear_suspicion(device)
            self._parts.push([device])
            return {"request": request, "approved": approve, "device": device}
        self._parts.send()
        self._parts.woken([woken] if woken else [])
        return {"request": request, "approved": approve}

    async def edit(self, request: str, text: str, digest: str) -> object:
        """Approve an effect, seen under this digest, with another text."""
        woken = await self._parts.units.write(
            lambda u: people.edit(u, request, u.by, text=text, digest=digest)
        )
        self._parts.send()
        self._parts.woken([woken] if woken else [])
        return {"request": request, "approved": True, "edited": True}

    async def ask_again(self, request: str) -> object:
        """Ask once more for what nobody approved in time."""
        made = await self._parts.units.write(lambda u: approvals.ask_again(u, request, u.by))
        return {"request": made, "again_of": request}

    async def pairings(self) -> object:
        """List the devices that ask to be paired."""
        return [self._shown(pairing) for pairing in await self._parts.pairings.waiting()]

    async def pairing(self, code: str) -> object:
        """Show the device whose code this is; a wrong code counts as a guess."""
        return self._shown(await self._parts.pairings.look(code))

    async def pair(self, code: str, *, bound_hash: str) -> object:
        """Approve that device, if it is still the one that was shown under this hash."""
        pairing = await self._parts.pairings.look(code)
        if pairing.bound_hash != bound_hash:
            raise ChangedError
        approval = await self._parts.pairings.approve(pairing, by=acting.by())
        return {"device": approval.device_id, "granted": list(approval.granted)}

    async def revoke(self, device: str) -> object:
        """Take a device's right away and cut its link."""
        told = await self._parts.units.write(lambda u: devices.revoke(u, device))
        if told is None:
            reason = f"{device} is no paired device, or is revoked already"
            raise RefusedError(reason)
        cut = self._parts.links.revoke(device)
        self._parts.woken(told)
        return {"device": device, "revoked": True, "was_online": cut}

    async def test(self, source: str) -> object:
        """Look live whether a source could work."""
        found = await self._parts.connectors.validate(source)
        if found is None:
            raise UnknownIdError(source)
        return found

    async def retry(self, source: str) -> object:
        """Try a source again now."""
        if not self._parts.connectors.retry(source):
            reason = f"there is no source {source} to try again"
            raise RefusedError(reason)
        return {"source": source, "retried": True}

    def _shown(self, pairing: Pairing) -> dict[str, object]:
        left_ms = int(pairing.expires_at.timestamp() * 1000) - now_ms(self._parts.units.clock)
        return {
            "request": pairing.id,
            "code": pairing.code,
            "digits": pairing.digits,
            "bound_hash": pairing.bound_hash,
            "host": pairing.host,
            "remote": pairing.remote,
            "caps": list(pairing.caps),
            "hostname": pairing.facts.hostname,
            "system": pairing.facts.system,
            "user": pairing.facts.user,
            "version": pairing.facts.version,
            "expires_in_s": max(left_ms // 1000, 0),
        }
