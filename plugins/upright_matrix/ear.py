"""Ear: hears the homeserver out by sync, from the stored token on.

At the very first the token is "now": nothing of the past is a trigger. After that, each answer's
triggers and its token are stored in one transaction; what the first sync after a start brings was
missed, and is marked late.
"""

from __future__ import annotations

import heapq
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from upright.api import ConnectorContext, ConnectorNotReadyError, Trigger
from upright.kit.calls import Answer
from upright.kit.late import late
from upright_matrix.client import V3, MatrixClient, path, reason
from upright_matrix.rooms import Room
from upright_matrix.settings import MatrixSettings
from upright_matrix.timeline import Gaps, Raw, Synced, read_sync, sync_filter
from upright_matrix.translate import Translator

BATCH: Final = 100


@dataclass(slots=True, kw_only=True)
class Ear:
    """Listens for one source. ``heard_at`` and ``gap`` are its health."""

    client: MatrixClient
    context: ConnectorContext
    settings: MatrixSettings
    translator: Translator
    heard_at: datetime | None = None
    gap: str = ""
    _unread: set[str] = field(default_factory=set)  # what was said once in the log

    async def listen(self) -> None:
        """Listen until cancelled.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: the server can't be reached, is ill, or a limit holds.
        """
        await self.translator.rooms.load_direct()
        since = await self.context.cursor()
        since = await self._begin() if since is None else await self._catch_up(since)
        while True:
            answer = await self._sync(since, wait_s=self.settings.poll_s)
            since = await self._take(self._answered(answer), since, is_late=False)

    async def _begin(self) -> str:
        """Begin now: what was said before is history."""
        answer = await self._sync("", wait_s=0)
        synced = self._answered(answer)
        await self._invited(synced)
        await self.context.emit((), cursor=synced.next_batch)
        return synced.next_batch

    async def _catch_up(self, since: str) -> str:
        answer = await self._sync(since, wait_s=0)
        if answer.status == 400:
            self.gap = "The place up to which all was read is lost: what came before is not read"
            extra = {"source": self.context.source, "why": reason(answer)}
            self.context.log.warning("source.cursor_lost", extra=extra)
            return await self._begin()
        return await self._take(self._answered(answer), since, is_late=True)

    async def _sync(self, since: str, *, wait_s: float) -> Answer:
        mark = "" if wait_s else secrets.token_hex(8)
        chosen = sync_filter(mark=mark) if since else sync_filter(limit=1, mark=mark)
        query = {"timeout": str(int(wait_s * 1000)), "filter": chosen}
        if since:
            query["since"] = since
        bound_s = wait_s + self.settings.timeout_s
        answer = await self.client.get(f"{V3}/sync", query, within_s=bound_s)
        self.heard_at = self.context.now()
        return answer

    def _answered(self, answer: Answer) -> Synced:
        synced = read_sync(answer.value)
        if answer.status != 200 or not synced.next_batch:
            said = f"The sync failed: {reason(answer)}"
            raise ConnectorNotReadyError(said)
        return synced

    async def _take(self, synced: Synced, since: str, *, is_late: bool) -> str:
        """Store what a sync told, and its token with the last of it."""
        if synced.direct is not None:
            self.translator.rooms.learn_direct(synced.direct)
        told = [await self._room(room, synced, since) for room in synced.joined]
        triggers = list(heapq.merge(*told, key=_when))  # each room keeps its own order
        await self._invited(synced)
        if triggers or synced.next_batch != since:
            await self._emit([late(one) for one in triggers] if is_late else triggers, synced)
        return synced.next_batch

    async def _emit(self, triggers: Sequence[Trigger], synced: Synced) -> None:
        while len(triggers) > BATCH:
            await self.context.emit(triggers[:BATCH])
            triggers = triggers[BATCH:]
        await self.context.emit(triggers, cursor=synced.next_batch)

    async def _room(self, room_id: str, synced: Synced, since: str) -> list[Trigger]:
        heard = synced.joined[room_id]
        room = await self.translator.rooms.get(room_id)
        room.learn(heard.state)
        if not self.translator.rules.hears(*room.names):
            room.learn(heard.timeline)
            return []
        gaps = Gaps(self.client, self.settings.user_id, self.settings.max_gap)
        events, whole = await gaps.whole(room_id, heard, since)
        if not whole:
            self.gap = f"Of {room.name or room_id} more was missed than could be read anew"
            extra = {"source": self.context.source, "room": room_id}
            self.context.log.warning("source.gap", extra=extra)
        return [made for raw in events if (made := await self._event(room, raw))]

    async def _event(self, room: Room, raw: Raw) -> Trigger | None:
        room.learn((raw,))
        if raw.get("type") == "m.room.encrypted" and room.id not in self._unread:
            self._unread.add(room.id)
            extra = {"source": self.context.source, "room": room.id}
            self.context.log.warning("matrix.encrypted", extra=extra)
        return await self.translator.trigger(room, raw)

    async def _invited(self, synced: Synced) -> None:
        """Join where somebody of the allow list invites us; leave other invitations alone."""
        for room, state in synced.invites.items():
            inviter = _inviter(state, self.settings.user_id)
            allowed = self.settings.invites_from
            if inviter in allowed or f"*:{inviter.partition(':')[2]}" in allowed:
                answer = await self.client.post(path("join", room), {})
                self._joined(room, inviter, answer)
            else:
                extra = {"source": self.context.source, "room": room, "by": inviter}
                self.context.log.info("matrix.invite_left_alone", extra=extra)

    def _joined(self, room: str, inviter: str, answer: Answer) -> None:
        extra: dict[str, Any] = {"source": self.context.source, "room": room, "by": inviter}
        if answer.status == 200:
            self.context.log.info("matrix.joined", extra=extra)
        else:
            extra["why"] = reason(answer)
            self.context.log.warning("matrix.not_joined", extra=extra)


def _when(trigger: Trigger) -> float:
    return trigger.occurred_at.timestamp() if trigger.occurred_at else 0.0


def _inviter(state: Sequence[Raw], user_id: str) -> str:
    ours = [one for one in state if one.get("state_key") == user_id]
    return next((str(one.get("sender")) for one in ours if one.get("type") == "m.room.member"), "")
