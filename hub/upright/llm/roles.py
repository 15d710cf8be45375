"""Roles: each role's model, at its own endpoint where it has one (B17.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from upright.engine.ports import ChatReply, ChatRequest, Reckoned
from upright.llm.abilities import Abilities
from upright.llm.endpoint import ModelSettings


class Endpoint(Protocol):
    """A chat endpoint with what is known of it; ``llm.chat.OpenAIChat`` is one."""

    settings: ModelSettings
    abilities: Abilities

    async def start(self) -> None:
        """Get ready."""
        ...

    async def stop(self) -> None:
        """Close every connection."""
        ...

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        """See ``engine.ports.ChatModel``."""
        ...

    def reckon(self, request: ChatRequest, said_chars: int) -> Reckoned:
        """See ``engine.ports.ChatModel``."""
        ...


class Roles:
    """Implements ``engine.ports.ChatModel`` over several endpoints."""

    def __init__(self, default: Endpoint, own: Mapping[str, Endpoint]) -> None:
        """Make it of the endpoint of each role that has its own, and of that of all others."""
        self._default = default
        self._own = dict(own)

    def endpoint(self, role: str) -> Endpoint:
        """Return the endpoint of a role; a role that nobody named has the default one."""
        return self._own.get(role, self._default)

    def endpoints(self) -> list[Endpoint]:
        """Return every endpoint, once."""
        return list({id(one): one for one in (self._default, *self._own.values())}.values())

    async def start(self) -> None:
        """Get every endpoint ready."""
        for one in self.endpoints():
            await one.start()

    async def stop(self) -> None:
        """Close every connection."""
        for one in self.endpoints():
            await one.stop()

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        """Ask the endpoint of the request's role."""
        return await self.endpoint(request.role).complete(request, on_part)

    def reckon(self, request: ChatRequest, said_chars: int) -> Reckoned:
        """Reckon with the model of the request's role."""
        return self.endpoint(request.role).reckon(request, said_chars)
