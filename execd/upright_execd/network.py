"""Network: the network half, built from what was paired; and what a revocation does here."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import pwd
import secrets
import socket
from dataclasses import replace
from pathlib import Path
from typing import Final

from upright_execd import pinned
from upright_execd.audit import Audit
from upright_execd.clock import Clock, SystemClock, os_boot_id
from upright_execd.commands import LocalCommands
from upright_execd.confinement import caps, enforceable
from upright_execd.conversation import Times
from upright_execd.errors import NotFoundError, RevokedError
from upright_execd.keys import KeyFile, KeyRing, KeyStore, open_key
from upright_execd.link import HubLink, LinkParts, LinkStatus, Me
from upright_execd.paths import Paths, make_private
from upright_execd.pinned import Pinned
from upright_execd.redial import Intervals
from upright_execd.settings import Settings
from upright_wire.command import State
from upright_wire.frames import Facts
from upright_wire.handshake import key_id
from upright_wire.version import __version__

END_S: Final = 15.0
END_LOOK_S: Final = 0.05
log: Final = logging.getLogger("upright.execd")


class NetworkHalf:
    """The link to the hub; when that revokes this machine, all that the pairing gave ends."""

    def __init__(self, paths: Paths, link: HubLink, commands: LocalCommands, clock: Clock) -> None:
        self._paths, self._link, self._commands, self._clock = paths, link, commands, clock

    @property
    def state(self) -> str:
        """How the link is, for people."""
        status = self._link.status
        return f"{status.state} ({status.reason})" if status.reason else status.state.value

    async def run(self) -> None:
        """Keep the link until cancelled.

        Raises:
            RevokedError: the hub wants no more of this machine; key and pairing are gone.
        """
        end = await self._link.run()
        log.warning("link.revoked", extra={"reason": end.reason[:300]})
        await end_all(self._commands, self._clock)
        await asyncio.to_thread(forget, self._paths, by="hub")
        sentence = "The hub revoked this machine."
        raise RevokedError(sentence, advice="Pair it again: execd pair HUB")


def network_half(paths: Paths, settings: Settings, commands: LocalCommands) -> NetworkHalf:
    """Build it. Blocks: it reads the key.

    Raises:
        NotFoundError: this machine is not paired.
        KeyStoreError: its key can't be read.
    """
    hub = paired(paths)
    me = Me(
        key=open_key(key_store(hub.key_file)),
        pinned=hub,
        caps=caps(enforceable()),
        boot_id=secrets.token_hex(8),
        os_boot_id=os_boot_id(),
    )
    parts = LinkParts(
        me=me, commands=commands, times=times(settings), uniform=secrets.SystemRandom().uniform
    )
    return NetworkHalf(paths, HubLink(parts, _tell), commands, parts.times.clock)


async def end_all(commands: LocalCommands, clock: Clock, *, within_s: float = END_S) -> None:
    """Cancel every command, and wait for the ends, but not for ever."""
    for snapshot in commands.open_commands():
        await commands.cancel(snapshot.command_id)
    try:
        async with asyncio.timeout(within_s):
            while any(s.state is not State.FINAL for s in commands.open_commands()):
                await clock.sleep(END_LOOK_S)
    except TimeoutError:
        log.warning("commands.left", extra={"within_s": within_s})


def paired(paths: Paths) -> Pinned:
    """Return the hub that this machine is paired with.

    Raises:
        NotFoundError: there is none.
    """
    hub = pinned.load(paths.pairing)
    if hub is None:
        raise NotFoundError(pinned.why_none(paths), advice="Run: execd pair HUB")
    return hub


def remember(paths: Paths, hub: Pinned) -> None:
    """Pin a hub, and say so in the log."""
    pinned.save(paths.pairing, hub)
    make_private(paths.state)
    facts = {"hub": hub.host, "hub_id": hub.hub_id, "hub_key": key_id(hub.hub_key)}
    Audit(paths.audit, SystemClock()).write("pairing.made", device=hub.device_id, **facts)


def forget(paths: Paths, *, by: str) -> None:
    """Wipe the key and the pairing; receipts, settings and log stay. *by* ``hub`` or ``owner``."""
    hub = pinned.load(paths.pairing)
    if hub is not None:
        key_store(hub.key_file).wipe()
        paths.pairing.unlink(missing_ok=True)
        audit = Audit(paths.audit, SystemClock())
        audit.write(pinned.ENDED, device=hub.device_id, hub=hub.host, by=by)


def key_store(key_file: str | None) -> KeyStore:
    """Return where the key is kept: a file, or the keyring."""
    return KeyRing() if key_file is None else KeyFile(Path(key_file))


def times(settings: Settings) -> Times:
    """Return the clock and the intervals of a link."""
    clock = SystemClock()
    intervals = replace(
        Intervals(),
        first_redial_s=settings.first_redial_ms / 1000,
        most_redial_s=settings.most_redial_ms / 1000,
    )
    return Times(clock=clock, boot_time=clock.boot_time, intervals=intervals)


def facts() -> Facts:
    """Return what a person sees of this machine when it asks to be paired."""
    return Facts(
        hostname=socket.gethostname(),
        system=platform.platform(terse=True),
        user=pwd.getpwuid(os.getuid()).pw_name,
        version=__version__,
    )


def _tell(status: LinkStatus) -> None:
    log.info("link.state", extra={"state": status.state.value, "reason": status.reason[:300]})
