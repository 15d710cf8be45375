"""System: the first message of each kind of agent; nothing in it changes from call to call.

In the order of stability: what all agents share, then what the kind is told. What changes more
often (an agent's home, a card) stands behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from upright.agent.prompts import common, router, worker
from upright.agent.prompts.part import Part, joined

PARTS: Final[Mapping[str, tuple[Part, ...]]] = {
    "router": (
        common.opening("the router"),
        common.MATERIAL,
        common.IDS,
        common.RECALL,
        *router.PARTS,
    ),
    "worker": (
        common.opening("a worker"),
        common.MATERIAL,
        common.IDS,
        common.RECALL,
        *worker.PARTS,
    ),
}
SYSTEM: Final[Mapping[str, str]] = {kind: joined(parts) for kind, parts in PARTS.items()}
