"""Rooms: what is known of each: names, members, power levels, and whether it is a direct talk.

A sync from a token tells what changed and nothing else, so a room's whole state is read when it is
first met (and never from a stored file that could be stale).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from upright.kit.rooms import Known
from upright_matrix.client import MatrixClient, path
from upright_matrix.events import MEMBER

_MOST_ROOMS: Final = 1_024
_DIRECT_MEMBERS: Final = 2


@dataclass(slots=True)
class Room:
    """One room's state. ``members`` maps who is in it, or invited, to the name shown."""

    id: str
    name: str = ""
    alias: str = ""
    members: dict[str, str] = field(default_factory=dict)
    power_levels: Mapping[str, Any] = field(default_factory=dict)
    encrypted: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Return what configuration may call it."""
        return (self.id, self.alias) if self.alias else (self.id,)

    def shown(self, user: str) -> str:
        """Return the name under which a user is shown; the id when there is none."""
        return self.members.get(user) or user

    def learn(self, events: Iterable[object]) -> None:
        """Take state events in, oldest first; other events change nothing."""
        for event in events:
            if isinstance(event, dict) and isinstance(event.get("state_key"), str):
                content = event.get("content")
                self._take(event, content if isinstance(content, dict) else {})

    def _take(self, event: Mapping[str, Any], content: Mapping[str, Any]) -> None:
        match event.get("type"):
            case "m.room.name":
                self.name = _text(content, "name")
            case "m.room.canonical_alias":
                self.alias = _text(content, "alias")
            case "m.room.power_levels":
                self.power_levels = content
            case "m.room.encryption":
                self.encrypted = True
            case str(kind) if kind == MEMBER:
                user = str(event["state_key"])
                if content.get("membership") in {"join", "invite"}:
                    self.members[user] = _text(content, "displayname")
                else:
                    self.members.pop(user, None)
            case _:
                pass


def _text(content: Mapping[str, Any], key: str) -> str:
    found = content.get(key)
    return found if isinstance(found, str) else ""


class Rooms:
    """All rooms of one source."""

    def __init__(self, client: MatrixClient, user_id: str) -> None:
        self._client = client
        self._me = user_id
        self._rooms = Known[Room](_MOST_ROOMS)
        self._direct: frozenset[str] = frozenset()

    async def load_direct(self) -> None:
        """Read which rooms our account calls direct talks."""
        answer = await self._client.get(path("user", self._me, "account_data", "m.direct"))
        self.learn_direct(answer.value if answer.status == 200 else {})

    def learn_direct(self, content: Mapping[str, object]) -> None:
        """Take the account's list of direct talks in."""
        rooms = [room for one in content.values() if isinstance(one, list) for room in one]
        self._direct = frozenset(room for room in rooms if isinstance(room, str))

    async def get(self, room: str) -> Room:
        """Return a room, its whole state read when it is first met."""
        return await self._rooms.learn(room, lambda: self._read(room))

    def met(self, room: str) -> Room | None:
        """Return a room if it was met."""
        return self._rooms.get(room)

    async def _read(self, room: str) -> Room:
        found = Room(id=room)
        answer = await self._client.get(path("rooms", room, "state"))
        found.learn(answer.objects())
        return found

    def is_direct(self, room: Room) -> bool:
        """Tell whether a room is a talk of two."""
        return room.id in self._direct or (
            len(room.members) == _DIRECT_MEMBERS and self._me in room.members
        )
