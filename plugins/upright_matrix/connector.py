"""The connector of one Matrix source."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from upright.api import (
    Actor,
    ActorKind,
    Capabilities,
    Connector,
    ConnectorContext,
    ConnectorNotReadyError,
    Effect,
    Health,
    InboundRequest,
    Message,
    Neighbours,
    Probe,
    Receipt,
    Trigger,
    TriggerRejectedError,
)
from upright.kit.calls import Answer, JsonCalls
from upright.kit.loop import LoopBudget
from upright.kit.rooms import RoomRules
from upright_matrix.client import MatrixClient, path
from upright_matrix.ear import Ear
from upright_matrix.events import MESSAGE, What, read
from upright_matrix.past import Past
from upright_matrix.rooms import Rooms
from upright_matrix.sender import MAX_CONTENT_BYTES, MAX_PARTS, Sender
from upright_matrix.settings import MatrixSettings
from upright_matrix.translate import Translator


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """What a started connector works with."""

    client: MatrixClient
    ear: Ear
    sender: Sender


class MatrixConnector(Connector):
    """One source: a homeserver, an account, a token."""

    def __init__(self, source: str, settings: MatrixSettings) -> None:
        self._source = source
        self._settings = settings
        self._running: _Running | None = None

    async def validate(self) -> Probe:
        """Sign in and look: is the token good, and is it the bot's own?

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: the server can't be reached.
        """
        answer = await self._started().client.get(path("account", "whoami"))
        who = answer.text("user_id")
        if who != self._settings.user_id:
            whose = f"but the token belongs to {who or 'nobody'}"
            said = f"user_id is {self._settings.user_id}, {whose}"
            return Probe(ok=False, summary=said)
        rooms = await self._started().client.get(path("joined_rooms"))
        listed = rooms.value.get("joined_rooms")
        count = len(listed) if isinstance(listed, list) else 0
        return Probe(ok=True, summary=f"Signed in as {who}, in {count} rooms")

    async def start(self, context: ConnectorContext) -> None:
        """Make the client; nothing is asked of the server yet."""
        settings, me = self._settings, self._settings.user_id
        calls = JsonCalls(
            settings.homeserver, context.secret(settings.token), timeout_s=settings.timeout_s
        )
        client = MatrixClient(calls)
        past = Past(client, me)
        translator = Translator(
            context=context,
            user_id=me,
            bots=frozenset(settings.bots),
            rules=RoomRules(
                allowed=frozenset(settings.rooms),
                mention_only=frozenset(settings.mention_only),
                senders=frozenset(settings.senders),
            ),
            rooms=Rooms(client, me),
            past=past,
            budget=LoopBudget(),
        )
        kind = "m.notice" if settings.notices else "m.text"
        self._running = _Running(
            client=client,
            ear=Ear(client=client, context=context, settings=settings, translator=translator),
            sender=Sender(client, context, past, me=me, kind=kind),
        )

    async def listen(self) -> None:
        """Hear the homeserver out; see :class:`Ear`."""
        await self._started().ear.listen()

    async def stop(self, timeout_s: float) -> None:
        """Close the client; a call under way is cut."""
        running, self._running = self._running, None
        if running is not None:
            async with asyncio.timeout(timeout_s):
                await running.client.calls.close()

    async def backfill(self, since: str | None, until: datetime) -> AsyncIterator[Trigger]:
        """Yield nothing: the sync token tells all that was missed."""
        del since, until
        for nothing in tuple[Trigger, ...]():
            yield nothing

    async def receive(self, request: InboundRequest) -> Sequence[Trigger]:
        """Refuse: a homeserver sends no webhooks.

        Raises:
            TriggerRejectedError: always, 404.
        """
        del request
        raise TriggerRejectedError("Matrix sends no webhooks", status=404)

    async def send(self, effect: Effect) -> Receipt:
        """Send a message once; see :class:`Sender` for what it raises."""
        return await self._started().sender.send(effect)

    async def neighbours(self, trigger: Trigger, before: int, after: int) -> Neighbours:
        """Return the messages around an event, of its room.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: the server can't be reached, or a limit holds.
        """
        facts = dict(trigger.context.facts)
        event, room = facts.get("native_id") or trigger.context.edit_of, facts.get("room", "")
        if not event or not room:
            return Neighbours()
        client = self._started().client
        query = {
            "limit": str(2 * max(before, after, 1)),
            "filter": json.dumps({"types": [MESSAGE]}),
        }
        answer = await client.get(path("rooms", room, "context", event), query)
        if answer.status != 200:
            return Neighbours()
        earlier = self._messages(answer, "events_before")[:before]
        later = self._messages(answer, "events_after")[:after]
        return Neighbours(before=tuple(reversed(earlier)), after=tuple(later), whole=True)

    def _messages(self, answer: Answer, key: str) -> list[Message]:
        found = list[Message]()
        for raw in answer.objects(key):
            try:
                event = read(raw)
            except TriggerRejectedError:
                continue
            if event.what is What.SAID:
                kind = ActorKind.BOT if event.notice else ActorKind.STRANGER
                kind = ActorKind.SELF if event.sender == self._settings.user_id else kind
                author = Actor(id=event.sender, name=event.sender, kind=kind)
                found.append(Message(id=event.id, author=author, text=event.text, at=event.at))
        return found

    def capabilities(self) -> Capabilities:
        """Say what this connector can do."""
        return Capabilities(
            listens=True,
            neighbours=True,
            answers=True,
            destinations=("thread", "room"),
            max_text_chars=MAX_CONTENT_BYTES // 8 * MAX_PARTS,
        )

    def health(self) -> Health:
        """Say when the last sync was answered, and what may have been missed."""
        if self._running is None:
            return Health()
        return Health(heard_at=self._running.ear.heard_at, gap=self._running.ear.gap)

    def _started(self) -> _Running:
        if self._running is None:
            raise ConnectorNotReadyError("The source is not started")
        return self._running
