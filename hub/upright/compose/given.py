"""Given: what the world gives a hub: its key, its model's client, and chance."""

from __future__ import annotations

import secrets
from typing import Final

from upright.agent.turn import AgentLimits
from upright.api import Secret
from upright.core.backoff import Backoff
from upright.core.compaction import ContextBounds
from upright.core.turn import Limits as TurnLimits
from upright.devices.identity import new_private_key
from upright.engine.clock import SystemClock
from upright.llm.chat import OpenAIChat
from upright.llm.endpoint import Bounds, ModelSettings
from upright.settings.home import Home, write_private
from upright.settings.model import ModelSection
from upright.settings.shape import Limits


def private_key(home: Home) -> bytes:
    """Return the hub's key; make it when there is none. This blocks."""
    try:
        return home.hub_key.read_bytes()
    except FileNotFoundError:
        key = new_private_key()
        write_private(home.hub_key, key)
        return key


def model_of(section: ModelSection, key: Secret | None, clock: SystemClock) -> OpenAIChat:
    """Make the model's client."""
    bounds = Bounds(
        first_byte_s=section.first_byte_s,
        idle_s=section.idle_s,
        whole_s=section.whole_s,
        backoff=Backoff(base_s=0.5, cap_s=20.0, max_tries=section.tries),
    )
    settings = ModelSettings(
        base_url=section.base_url,
        model=section.name,
        models=section.names(),
        api_key=key,
        bounds=bounds,
    )
    return OpenAIChat(settings, clock, roll)


def agent_limits(section: Limits) -> AgentLimits:
    """Return the agents' bounds as the settings have them."""
    turn = TurnLimits(max_steps=section.steps_per_turn)
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
