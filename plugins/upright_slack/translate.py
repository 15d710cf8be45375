"""Translation: an event becomes a trigger, or nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Final

from upright.api import (
    Actor,
    ActorKind,
    Address,
    Channel,
    ConnectorContext,
    Content,
    Context,
    Trigger,
)
from upright.kit.loop import Heard, LoopBudget
from upright.kit.payload import Json
from upright.kit.rooms import Known, RoomRules, Speech
from upright.kit.typed import without_mention
from upright_slack.client import SlackClient
from upright_slack.events import Event, What, read
from upright_slack.identity import Identity, destination
from upright_slack.text import moment, names, readable

OURS: Final = True
_US: Final = "<@us>"
_PAGE: Final = "200"


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    """Translates for one source, by whichever road an event comes."""

    context: ConnectorContext
    client: SlackClient
    me: Identity
    rules: RoomRules
    budget: LoopBudget = field(default_factory=LoopBudget)
    _roots: Known[str] = field(default_factory=Known)  # messages in threads, to the roots
    _ours: Known[bool] = field(default_factory=Known)
    _titles: Known[str] = field(default_factory=Known)

    def take_part(self, channel: str, root: str) -> None:
        """Remember that a thread is ours: we spoke in it, or were spoken to."""
        self._ours.put(f"{channel}/{root}", OURS)

    def learn_title(self, channel: str, name: str) -> None:
        """Remember what people call a channel."""
        if name:
            self._titles.put(channel, f"#{name}")

    async def trigger(self, inner: Json, *, event_id: str = "", raw: bytes = b"") -> Trigger | None:
        """Translate one event; None: it is no news for us.

        Raises:
            TriggerRejectedError: it lacks what such an event always has.
        """
        event = read(inner)
        if event is None or not self.rules.hears(event.channel):
            return None
        event = self._rooted(event)
        made = self._made(event, event_id)
        if not (self._heard(event, made.actor) and await self._wanted(event, made)):
            return None
        return replace(made, raw=raw or json.dumps(dict(inner.value)).encode())

    def _rooted(self, event: Event) -> Event:
        """Find the thread of what tells only the message that it is about."""
        key = f"{event.channel}/{event.ts}"
        if event.root != event.ts:
            self._roots.put(key, event.root)
            return event
        return replace(event, root=self._roots.get(key) or event.root)

    def _made(self, event: Event, event_id: str) -> Trigger:
        link = self.me.link(event.channel, event.ts, event.root)
        said = event.what in {What.SAID, What.EDITED}
        actor = self._actor(event)
        address = self._speech(event).address if said else Address.NONE
        if actor.kind is ActorKind.SELF:
            address = Address.NONE
        native = f"{event.channel}:{event.ts}"
        created = event.what is What.SAID
        facts = {
            "native_id": native if created else "",
            "channel": event.channel,
            "thread_ts": event.root if event.root != event.ts else "",
            "reaction": "" if said else event.text,
            "url": link,
        }
        return Trigger(
            kind=event.what.value,
            channel=Channel.CHAT,
            actor=actor,
            content=Content(
                title=self._titles.get(event.channel) or "",
                text=readable(event.text) if said else "",
                typed=self._typed(event, actor),
                attachments=event.files,
                expects_reply=created and address is not Address.NONE,
            ),
            context=Context(
                thread=self.me.thread(event.channel, event.root),
                reply_to=destination(self.context.source, event.channel, event.root),
                address=address,
                links=(link,),
                edit_of="" if created else native,
                facts=tuple((name, value) for name, value in facts.items() if value),
            ),
            dedupe=(*((f"event:{event_id}",) if event_id else ()), event.key),
            occurred_at=moment(event.at),
        )

    def _actor(self, event: Event) -> Actor:
        kind = ActorKind.STRANGER
        if self.me.is_us(event.user, event.bot):
            kind = ActorKind.SELF
        elif event.bot:
            kind = ActorKind.BOT
        who = event.user or event.bot or "unknown"
        return Actor(id=who, name=event.name or who, kind=kind)

    def _typed(self, event: Event, actor: Actor) -> str:
        """Return what a person typed, for what it says to us; see ``Content.typed``."""
        if event.what is not What.SAID or not event.plain or actor.kind is not ActorKind.STRANGER:
            return ""
        mention = re.compile(rf"<@{re.escape(self.me.user)}(?:\|[^<>]*)?>")
        return readable(without_mention(mention.sub(_US, event.text, count=1), (_US,)))

    def _speech(self, event: Event) -> Speech:
        return Speech(
            direct=event.direct,
            mentioned=names(event.text, self.me.user),
            answers_us=event.parent_user == self.me.user,
        )

    def _heard(self, event: Event, actor: Actor) -> bool:
        if actor.kind is ActorKind.SELF:
            return True
        if not self.rules.hears_from(actor.id):
            return False
        if actor.kind is not ActorKind.BOT:
            return True
        at = moment(event.at) or self.context.now()
        heard = self.budget.hear(actor.id, event.channel, at)
        if heard is Heard.LAST:
            extra = {"source": self.context.source, "bot": actor.id, "room": event.channel}
            self.context.log.warning("chat.loop_paused", extra=extra)
        return heard is not Heard.NO

    async def _wanted(self, event: Event, made: Trigger) -> bool:
        """Tell whether it is heard where only mentions are; what is ours is remembered."""
        ours = made.context.address is not Address.NONE or made.actor.kind is ActorKind.SELF
        if ours:
            self.take_part(event.channel, event.root)
        if ours or not self.rules.only_mentions(event.channel):
            return True
        if event.root == event.ts and event.what is What.SAID:
            return False
        key = f"{event.channel}/{event.root}"
        return await self._ours.learn(key, lambda: self._look(event))

    async def _look(self, event: Event) -> bool:
        """Ask whether we have a part in a thread, also from before a restart."""
        answer = await self.client.read(
            "conversations.replies", channel=event.channel, ts=event.root, limit=_PAGE
        )
        said = answer.objects("messages")
        return any(
            one.get("user") == self.me.user or names(str(one.get("text", "")), self.me.user)
            for one in said
        )
