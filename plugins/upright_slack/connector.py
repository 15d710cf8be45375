"""The connector of one Slack source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from upright.api import (
    Actor,
    ActorKind,
    Answered,
    Capabilities,
    Connector,
    ConnectorAuthFailedError,
    ConnectorContext,
    ConnectorNotReadyError,
    Effect,
    Health,
    InboundRequest,
    Message,
    Neighbours,
    Probe,
    Receipt,
    Secret,
    Trigger,
    TriggerRejectedError,
)
from upright.kit.calls import JsonCalls
from upright.kit.payload import Json
from upright.kit.rooms import RoomRules
from upright_slack.client import Shape, SlackClient, error_of
from upright_slack.ear import Ear
from upright_slack.events import What, read
from upright_slack.identity import DEFAULT_URL, Identity
from upright_slack.sender import MAX_CHARS, MAX_PARTS, Sender
from upright_slack.settings import SlackSettings
from upright_slack.sweep import Sweep
from upright_slack.text import moment, readable, stamp
from upright_slack.translate import Translator
from upright_slack.webhook import MAX_BODY_BYTES, open_callback

OVERLAP: Final = timedelta(minutes=2)  # our clock and Slack's differ; what comes twice is refused


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """What a started connector works with. Without an ear, events come by HTTP, and are signed."""

    context: ConnectorContext
    client: SlackClient
    translator: Translator
    sweep: Sweep
    sender: Sender
    ear: Ear | None = None
    signing: Secret | None = None


class SlackConnector(Connector):
    """One source: a workspace, an app, its bot."""

    def __init__(self, source: str, settings: SlackSettings) -> None:
        self._source = source
        self._settings = settings
        self._running: _Running | None = None

    async def validate(self) -> Probe:
        """Sign in and look: who are we, and in how many channels?

        Raises:
            ConnectorAuthFailedError: the token is refused, or lacks a scope.
            ConnectorNotReadyError: Slack can't be reached.
        """
        running = self._started()
        me = await _who(running.client)
        count = len(await running.sweep.channels())
        return Probe(ok=True, summary=f"Signed in as {me.user} in {me.team}, {count} channels")

    async def start(self, context: ConnectorContext) -> None:
        """Sign in: what is ours must be known before anything is heard.

        Raises:
            ConnectorAuthFailedError: the token is refused, or a secret is not there.
            ConnectorNotReadyError: Slack can't be reached.
        """
        settings = self._settings
        app, signing = (
            context.secret(one) if one else None
            for one in (settings.app_token, settings.signing_secret)
        )
        calls = self._calls(context.secret(settings.bot_token))
        client = SlackClient(calls, context)
        try:
            me = await _who(client)
        except BaseException:
            await calls.close()
            raise
        rules = RoomRules(
            allowed=frozenset(settings.channels),
            mention_only=frozenset(settings.mention_only),
            senders=frozenset(settings.senders),
        )
        translator = Translator(context=context, client=client, me=me, rules=rules)
        back = timedelta(seconds=settings.threads_back_s)
        sweep = Sweep(client=client, translator=translator, threads_back=back)
        ear = None
        if app is not None:
            ear = Ear(
                opener=self._calls(app),
                context=context,
                translator=translator,
                sweep=sweep,
                silence_s=settings.silence_s,
            )
        self._running = _Running(
            context=context,
            client=client,
            translator=translator,
            sweep=sweep,
            sender=Sender(client, translator, context),
            ear=ear,
            signing=signing,
        )

    def _calls(self, token: Secret) -> JsonCalls:
        return JsonCalls(self._settings.api_url, token, timeout_s=self._settings.timeout_s)

    async def listen(self) -> None:
        """Hear Slack out by Socket Mode; by HTTP there is nothing to listen to."""
        ear = self._started().ear
        if ear is not None:
            await ear.listen()

    async def stop(self, timeout_s: float) -> None:
        """Close the clients; a call under way is cut."""
        running, self._running = self._running, None
        if running is None:
            return
        async with asyncio.timeout(timeout_s):
            await running.client.calls.close()
            if running.ear is not None:
                await running.ear.opener.close()

    async def backfill(self, since: str | None, until: datetime) -> AsyncIterator[Trigger]:
        """Yield what was said since, by the history; see :class:`Sweep`."""
        if since is None:  # at the very first nothing was missed
            return
        began = stamp(datetime.fromisoformat(since) - OVERLAP)
        async for ts, trigger in self._started().sweep.missed(lambda _channel: began):
            if ts <= stamp(until + OVERLAP):
                yield trigger

    async def receive(self, request: InboundRequest) -> Sequence[Trigger]:
        """Verify a callback and translate it; a challenge is answered.

        A retry is taken like any other: the first copy may never have arrived.

        Raises:
            TriggerRejectedError: 401, 413, 415, 400, or 404 when events come by a socket.
            ConnectorNotReadyError: not started.
        """
        running = self._started()
        if running.signing is None:
            raise TriggerRejectedError("Events come by Socket Mode here", status=404)
        payload = open_callback(request, running.signing, running.context.now())
        if payload is None:
            return ()
        if payload.maybe_text("type") == "url_verification":
            return Answered(text=payload.text("challenge"))
        if payload.maybe_text("type") != "event_callback":
            return ()
        made = await running.translator.trigger(
            payload.part("event"), event_id=payload.maybe_text("event_id"), raw=request.body
        )
        return () if made is None else (made,)

    async def send(self, effect: Effect) -> Receipt:
        """Send a message once; see :class:`Sender` for what it raises."""
        return await self._started().sender.send(effect)

    async def neighbours(self, trigger: Trigger, before: int, after: int) -> Neighbours:
        """Return the messages around one: of its thread, or of the channel outside of threads.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: Slack can't be reached, or a limit holds.
        """
        facts = dict(trigger.context.facts)
        own = facts.get("native_id") or trigger.context.edit_of
        channel, _, ts = own.partition(":")
        if not ts:
            return Neighbours()
        root = facts.get("thread_ts", "")
        earlier = await self._messages(channel, root, latest=ts, limit=before)
        later = await self._messages(channel, root, oldest=ts, limit=after)
        first = max(0, len(earlier) - before)
        return Neighbours(before=tuple(earlier[first:]), after=tuple(later[:after]), whole=True)

    async def _messages(self, channel: str, root: str, limit: int, **bound: str) -> list[Message]:
        """Return messages on one side of a ``ts``, oldest first."""
        client, query = self._started().client, {"channel": channel, **bound}
        if limit < 1:
            return []
        if root:
            listed = client.pages("conversations.replies", "messages", **query, ts=root)
            shapes = [one async for one in listed]
        elif "latest" in bound:
            answer = await client.read("conversations.history", **query, limit=str(limit))
            shapes = list(answer.objects("messages"))
        else:  # the history gives the newest first: the nearest after are on its last page
            listed = client.pages("conversations.history", "messages", **query)
            shapes = [one async for one in listed]
        found = [self._message(channel, one) for one in shapes if _beyond(one, bound)]
        return sorted((one for one in found if one), key=lambda one: one.id)

    def _message(self, channel: str, shape: Shape) -> Message | None:
        try:
            event = read(Json({**shape, "type": "message", "channel": channel}))
        except TriggerRejectedError:
            return None
        if event is None or event.what is not What.SAID:
            return None
        kind = ActorKind.BOT if event.bot else ActorKind.STRANGER
        if self._started().translator.me.is_us(event.user, event.bot):
            kind = ActorKind.SELF
        who = event.user or event.bot
        author = Actor(id=who, name=event.name or who, kind=kind)
        text, at = readable(event.text), moment(event.ts)
        return Message(id=f"{channel}:{event.ts}", author=author, text=text, at=at)

    def capabilities(self) -> Capabilities:
        """Say what this connector can do."""
        socket = self._settings.app_token is not None
        return Capabilities(
            receives=not socket,
            listens=socket,
            lists=not socket,  # a socket's ear catches up by itself
            neighbours=True,
            answers=True,
            destinations=("thread", "room"),
            max_text_chars=MAX_CHARS * (MAX_PARTS - 1),
            max_body_bytes=MAX_BODY_BYTES,
        )

    def health(self) -> Health:
        """Say when the socket last gave a sign of life, and what may have been missed."""
        ear = self._running.ear if self._running else None
        return Health(heard_at=ear.heard_at, gap=ear.gap) if ear else Health()

    def _started(self) -> _Running:
        if self._running is None:
            raise ConnectorNotReadyError("The source is not started")
        return self._running


async def _who(client: SlackClient) -> Identity:
    answer = await client.read("auth.test")
    team, user = answer.text("team_id"), answer.text("user_id")
    if error_of(answer) or not team or not user:
        reason = f"auth.test: {error_of(answer) or 'no team or no user in the answer'}"
        raise ConnectorAuthFailedError(reason)
    url = answer.text("url") or DEFAULT_URL
    return Identity(team=team, user=user, bot=answer.text("bot_id"), url=url)


def _beyond(shape: Shape, bound: dict[str, str]) -> bool:
    ts = str(shape.get("ts") or "")
    return ts < bound["latest"] if "latest" in bound else ts > bound["oldest"]
