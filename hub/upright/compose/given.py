"""Given: what the world gives a hub: its key, its agents' bounds, and chance."""

from __future__ import annotations

import secrets
from typing import Final
from urllib.parse import urlsplit

from upright.agent.turn import AgentLimits
from upright.core.compaction import ContextBounds
from upright.core.turn import Limits as TurnLimits
from upright.devices.identity import new_private_key
from upright.settings.home import Home, write_private
from upright.settings.shape import HubSection, Limits
from upright.settings.spending import BudgetsSection


def private_key(home: Home) -> bytes:
    """Return the hub's key; make it when there is none. This blocks."""
    try:
        return home.hub_key.read_bytes()
    except FileNotFoundError:
        key = new_private_key()
        write_private(home.hub_key, key)
        return key


def dialled(hub: HubSection, port: int) -> frozenset[str]:
    """Return the names, with port, under which devices may dial this hub (E2.2)."""
    names = {hub.host, "localhost", "127.0.0.1"}
    outside = {urlsplit(hub.public_url).netloc} if hub.public_url else set[str]()
    return frozenset({f"{name}:{port}" for name in names} | outside)


def agent_limits(section: Limits, budgets: BudgetsSection) -> AgentLimits:
    """Return the agents' bounds as the settings have them."""
    turn = TurnLimits(max_steps=section.steps_per_turn, caps=budgets.turn.amounts())
    router, worker = section.router_context_tokens, section.worker_context_tokens
    return AgentLimits(
        turn=turn,
        context=ContextBounds(router=router, worker=worker),
        inline_wait_s=section.inline_wait_s,
    )


_RANDOM: Final = secrets.SystemRandom()


def roll() -> float:
    """Return a random number in [0, 1): what spreads retries."""
    return _RANDOM.random()
