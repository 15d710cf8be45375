"""Translation: an event becomes a trigger, or nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from upright.api import (
    Actor,
    ActorKind,
    Address,
    Channel,
    ConnectorContext,
    Content,
    Context,
    Destination,
    Trigger,
    TriggerRejectedError,
)
from upright.kit.loop import Heard, LoopBudget
from upright.kit.rooms import RoomRules, Speech
from upright.kit.typed import without_mention
from upright_matrix.events import ENCRYPTED, MESSAGE, Event, What, names, read
from upright_matrix.past import Past
from upright_matrix.rooms import Room, Rooms

KINDS: Final[Mapping[What, str]] = {
    What.SAID: "message.created",
    What.EDITED: "message.edited",
    What.REACTED: "reaction.added",
}
TAKEN_BACK: Final[Mapping[str, str]] = {
    MESSAGE: "message.deleted",
    ENCRYPTED: "message.deleted",
    "": "message.deleted",  # the server does not show us what it was
    "m.reaction": "reaction.removed",
}


def permalink(room: str, event: str = "") -> str:
    """Return the address under which people open a room or an event."""
    parts = (quote(one, safe="!$:@#") for one in (room, event) if one)
    return "/".join(("https://matrix.to/#", *parts))


def destination(source: str, room: str, root: str, event: str) -> Destination:
    """Return where an answer goes: into the thread of *root*, to *event*."""
    address = (("room", room), ("root", root), ("event", event))
    return Destination(source=source, kind="thread", address=address)


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    """Translates for one source; what it must know of rooms and earlier events it asks for."""

    context: ConnectorContext
    user_id: str
    bots: frozenset[str]
    rules: RoomRules
    rooms: Rooms
    past: Past
    budget: LoopBudget

    async def trigger(self, room: Room, raw: object) -> Trigger | None:
        """Translate one event of a room that is heard; None: it is no news for us.

        What can't be read is said in the log, and stops nothing.
        """
        try:
            event = read(raw)
        except TriggerRejectedError as error:
            self.context.log.warning("matrix.not_read", extra={"why": error.reason})
            return None
        if event.what is What.NOISE:
            return None
        kind = await self._kind(room, event)
        root = await self.past.root_of(room.id, event)
        if event.what in {What.SAID, What.REACTED}:
            self.past.note(event, root)
        if not kind:
            return None
        made = self._made(room, event, kind, root)
        made = replace(made, context=await self._addressed(room, event, made.context, root))
        if not (self._heard(room, event, made.actor) and await self._wanted(room, made, root)):
            return None
        others = made.actor.kind is not ActorKind.SELF and event.what is What.SAID
        asks = others and made.context.address is not Address.NONE
        content = replace(made.content, expects_reply=asks)
        return replace(made, content=content, raw=json.dumps(raw).encode())

    async def _kind(self, room: Room, event: Event) -> str:
        """Return the kind; empty for what changes nothing that we know of."""
        if event.what is What.EDITED:
            author = (await self.past.seen(room.id, event.target)).sender
            return KINDS[event.what] if author in {"", event.sender} else ""
        if event.what is What.TAKEN_BACK:
            return TAKEN_BACK.get((await self.past.seen(room.id, event.target)).type, "")
        return KINDS[event.what]

    def _made(self, room: Room, event: Event, kind: str, root: str) -> Trigger:
        link = permalink(room.id, event.target or event.id)
        facts = {
            "native_id": event.id if event.what is What.SAID else "",
            "room": room.id,
            "room_name": room.name or room.alias,
            "in_reply_to": event.replies_to,
            "reaction": event.text if event.what is What.REACTED else "",
            "notice": "yes" if event.notice else "",
            "url": link,
        }
        said = event.what in {What.SAID, What.EDITED}
        answers = event.target if event.what is What.EDITED else event.id
        return Trigger(
            kind=kind,
            channel=Channel.CHAT,
            actor=self._actor(room, event),
            content=Content(
                title=room.name or room.alias,
                text=event.text if said else "",
                typed=self._typed(room, event),
                attachments=(event.media,) if event.media else (),
            ),
            context=Context(
                thread=f"matrix:{room.id}/{root}",
                reply_to=destination(self.context.source, room.id, root, answers),
                links=(link,),
                edit_of="" if event.what is What.SAID else event.target,
                facts=tuple((name, value) for name, value in facts.items() if value),
            ),
            dedupe=(f"event:{event.id}",),
            occurred_at=event.at,
        )

    def _typed(self, room: Room, event: Event) -> str:
        """Return what a person typed, for what it says to us; see ``Content.typed``."""
        by_us = event.sender == self.user_id or event.sender in self.bots
        if event.what is not What.SAID or by_us or not event.plain:
            return ""
        shown, local = room.members.get(self.user_id, ""), self.user_id[1:].partition(":")[0]
        names = {self.user_id, shown, local, f"@{shown}" if shown else "", f"@{local}"}
        return without_mention(event.text, names)

    def _actor(self, room: Room, event: Event) -> Actor:
        kind = ActorKind.STRANGER
        if event.sender == self.user_id:
            kind = ActorKind.SELF
        elif event.notice or event.sender in self.bots:
            kind = ActorKind.BOT
        return Actor(id=event.sender, name=room.shown(event.sender), kind=kind)

    async def _addressed(self, room: Room, event: Event, context: Context, root: str) -> Context:
        """Say to whom it speaks; what we are part of is remembered."""
        if event.sender == self.user_id:
            self.past.take_part(root)
            return context
        if event.what not in {What.SAID, What.EDITED}:
            return context
        spoken_to = [await self.past.seen(room.id, one) for one in self._answered(event, root)]
        speech = Speech(
            direct=self.rooms.is_direct(room),
            mentioned=names(event, self.user_id, room.members.get(self.user_id, "")),
            answers_us=any(one.sender == self.user_id for one in spoken_to),
        )
        if speech.address is not Address.NONE:
            self.past.take_part(root)
        return replace(context, address=speech.address)

    @staticmethod
    def _answered(event: Event, root: str) -> tuple[str, ...]:
        """Return what a message answers: the one it names, and what its thread began with."""
        named = (event.replies_to, root if root != event.id else "")
        return tuple(dict.fromkeys(one for one in named if one))

    def _heard(self, room: Room, event: Event, actor: Actor) -> bool:
        if actor.kind is ActorKind.SELF:
            return True
        if not self.rules.hears_from(actor.id):
            return False
        if actor.kind is not ActorKind.BOT:
            return True
        heard = self.budget.hear(actor.id, room.id, event.at)
        if heard is Heard.LAST:
            extra = {"source": self.context.source, "bot": actor.id, "room": room.id}
            self.context.log.warning("chat.loop_paused", extra=extra)
        return heard is not Heard.NO

    async def _wanted(self, room: Room, made: Trigger, root: str) -> bool:
        if made.context.address is not Address.NONE or made.actor.kind is ActorKind.SELF:
            return True
        if not self.rules.only_mentions(*room.names):
            return True
        alone = made.context.thread.endswith(f"/{made.dedupe[0].removeprefix('event:')}")
        return not alone and await self.past.is_ours(room.id, root)
