"""Mind: the model of each role, metered, and what people see and do of it (A7, B16)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from upright.api import Secret, SecretRef
from upright.compose.given import roll
from upright.core.backoff import Backoff
from upright.engine.ports import Clock, Structured
from upright.engine.units import Units
from upright.llm.chat import OpenAIChat
from upright.llm.endpoint import Bounds, ModelSettings
from upright.llm.meter import Meter
from upright.llm.prices import PRICE_LIST, Price, PriceList
from upright.llm.roles import Roles
from upright.llm.structured import Ladder
from upright.settings.model import ModelSection
from upright.settings.shape import Settings

DEFAULT: Final = ""
"""The role of those that have no endpoint of their own."""

Keys = Mapping[str, Secret | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mind:
    """The model as agents see it, metered; ``structured`` answers in shapes through the same.

    Nothing is asked of an endpoint before there is something to do (B16.3): what it can do is
    learned at its first refusals, or by a person's ``upright model probe``. ``structured`` is for
    the advisor (B9.1) and for policies (B4); agents don't ask in shapes.
    """

    model: Meter
    roles: Roles
    structured: Structured


async def keys_of(
    section: ModelSection, secret: Callable[[SecretRef | None], Awaitable[Secret | None]]
) -> Keys:
    """Return the key of each role's endpoint; the default one's is named by an empty role."""
    own = {role: one.api_key for role, one in section.roles().items() if one.base_url}
    return {role: await secret(key) for role, key in {DEFAULT: section.api_key, **own}.items()}


def prices_of(settings: Settings) -> PriceList:
    """Return our price list under the prices of the settings."""
    own = {}
    for model, section in settings.prices.items():
        input_, cached, output = section.dollars()
        own[model] = Price(input=input_, cached=cached, output=output)
    return PRICE_LIST.under(own)


def roles_of(settings: Settings, keys: Keys, clock: Clock) -> Roles:
    """Make the client of each endpoint."""
    section, prices = settings.model, prices_of(settings)
    bounds = Bounds(
        first_byte_s=section.first_byte_s,
        idle_s=section.idle_s,
        whole_s=section.whole_s,
        backoff=Backoff(base_s=0.5, cap_s=20.0, max_tries=section.tries),
    )

    def client(
        base_url: str, model: str, key: Secret | None, names: Mapping[str, str]
    ) -> OpenAIChat:
        made = ModelSettings(
            base_url=base_url, model=model, models=names, api_key=key, bounds=bounds, prices=prices
        )
        return OpenAIChat(made, clock, roll)

    default = client(section.base_url, section.name, keys[DEFAULT], section.names())
    own = {
        role: client(one.base_url, one.name, keys[role], {})
        for role, one in section.roles().items()
        if one.base_url
    }
    return Roles(default, own)


def open_mind(settings: Settings, keys: Keys, units: Units) -> Mind | None:
    """Make the model; None where none is configured (B17.5)."""
    if not settings.model.configured:
        return None
    roles = roles_of(settings, keys, units.clock)
    meter = Meter(roles, units, settings.budgets.caps())
    return Mind(model=meter, roles=roles, structured=Ladder(meter, roles))
