"""Links: the live link of each device on this hub; a newer one supersedes (E2.3)."""

from __future__ import annotations

from collections import deque
from typing import Final

from upright.devices.link import DeviceLink
from upright.engine.ports import Clock
from upright_wire.frames import CloseCode

MAX_FLIPS: Final = 3
FLIP_WINDOW_S: Final = 60.0


class Links:
    """Which devices are here now."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._live: dict[str, DeviceLink] = {}
        self._flips: dict[str, deque[float]] = {}
        self._clones: set[str] = set()

    def online(self) -> frozenset[str]:
        """Return the devices with a live link."""
        return frozenset(self._live)

    def of(self, device_id: str) -> DeviceLink | None:
        """Return a device's live link."""
        return self._live.get(device_id)

    def enter(self, link: DeviceLink) -> None:
        """Take up a link; an older one of the same device is closed with 4008."""
        older = self._live.get(link.device_id)
        if older is not None:
            older.cut(CloseCode.SUPERSEDED, "a newer link")
            self._count_flip(link.device_id)
        self._live[link.device_id] = link

    def leave(self, link: DeviceLink) -> None:
        """Forget a link that ended, unless a newer one has its place."""
        if self._live.get(link.device_id) is link:
            del self._live[link.device_id]

    def revoke(self, device_id: str) -> bool:
        """Cut a device's link, after its revocation is stored; False: it has none here."""
        link = self._live.pop(device_id, None)
        if link is not None:
            link.cut(CloseCode.REVOKED, "revoked")
        return link is not None

    def close_all(self) -> None:
        """Tell every device that this hub goes down, and is soon back."""
        for link in self._live.values():
            link.cut(CloseCode.RESTART, "restart")

    def is_clone_suspected(self, device_id: str) -> bool:
        """Say whether two machines seem to use one key: new commands wait for a person."""
        return device_id in self._clones

    def clear_suspicion(self, device_id: str) -> None:
        """Believe a device again: a person has looked."""
        self._clones.discard(device_id)
        self._flips.pop(device_id, None)

    def _count_flip(self, device_id: str) -> None:
        now = self._clock.monotonic()
        flips = self._flips.setdefault(device_id, deque(maxlen=MAX_FLIPS + 1))
        flips.append(now)
        if len(flips) > MAX_FLIPS and now - flips[0] <= FLIP_WINDOW_S:
            self._clones.add(device_id)
