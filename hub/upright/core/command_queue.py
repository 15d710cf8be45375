"""Command queue: which of a device's waiting commands leave next, so that no session starves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from upright.core.ids import JobId, SessionId

MOST_UNDER_WAY: Final = 16
"""How many commands a device is given at once; the others wait here, where they can be stopped."""

MOST_WAITING: Final = 200
"""How many may wait for one device; one more is refused, and its worker is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A command that has not left for its device, and whose it is."""

    job: JobId
    session: SessionId


def leave(
    waiting: Sequence[Waiting], under_way: Sequence[SessionId], *, most: int = MOST_UNDER_WAY
) -> tuple[JobId, ...]:
    """Return who leaves now, in order.

    *waiting* is oldest first; *under_way* names a session for each command that the device has.
    The session with the fewest commands at the device comes first, then the older command.
    """
    counts = Counter(under_way)
    rest = list(enumerate(waiting))
    chosen: list[JobId] = []
    for _ in range(most - len(under_way)):
        if not rest:
            break
        next_one = min(rest, key=lambda one: (counts[one[1].session], one[0]))
        rest.remove(next_one)
        counts[next_one[1].session] += 1
        chosen.append(next_one[1].job)
    return tuple(chosen)
