"""The connector of one GitHub source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

from upright.api import (
    Capabilities,
    Connector,
    ConnectorAuthFailedError,
    ConnectorContext,
    ConnectorNotReadyError,
    Effect,
    Health,
    InboundRequest,
    Neighbours,
    Probe,
    Receipt,
    Secret,
    Trigger,
)
from upright.kit.late import late
from upright_github.client import Answer, GitHubClient, LostError, NotSentError
from upright_github.comments import MAX_BODY_CHARS, MAX_PARTS
from upright_github.destinations import KINDS
from upright_github.event import Identity
from upright_github.feeds import Feeds
from upright_github.listing import Listing
from upright_github.logs import Logs
from upright_github.poll import Poller
from upright_github.recovery import Recovery
from upright_github.sender import CommentSender
from upright_github.settings import GitHubSettings
from upright_github.translate import translate
from upright_github.webhook import open_delivery

MAX_SKEW_S: Final = 60.0  # more than this, and tokens of GitHub Apps begin to fail


class GitHubConnector(Connector):
    """One source: a webhook secret, a token, an API address."""

    def __init__(self, source: str, settings: GitHubSettings) -> None:
        self._source = source
        self._settings = settings
        self._me = Identity(login=settings.bot_login.strip(), app_id=settings.app_id)
        self._only = frozenset(name.lower() for name in settings.repositories)
        self._context: ConnectorContext | None = None
        self._client: GitHubClient | None = None
        self._sender: CommentSender | None = None
        self._secret: Secret | None = None
        self._feeds: Feeds | None = None
        self._poller: Poller | None = None
        self._recovery: Recovery | None = None
        self._logs: Logs | None = None

    async def validate(self) -> Probe:
        """Sign in and look: is the token good, is it the bot's own, do the clocks agree?

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: GitHub can't be reached, or a limit holds.
        """
        client, context = self._started()
        try:
            user = await client.get("/user")
            # An App's installation token is nobody's: it has limits, and no user.
            rest = await client.get("/rate_limit") if user.status == 403 else user
        except (NotSentError, LostError) as error:
            raise ConnectorNotReadyError(str(error)) from error
        if rest.status == 401:
            raise ConnectorAuthFailedError(rest.message)
        if rest.status != 200 or not isinstance(rest.value, dict):
            pause_s = rest.pause_s(context.now())
            raise ConnectorNotReadyError(rest.message, retry_after_s=pause_s)
        return self._probe(rest, _login(user), context.now())

    def _probe(self, answer: Answer, login: str, now: datetime) -> Probe:
        scopes = tuple(filter(None, answer.headers.get("x-oauth-scopes", "").split(", ")))
        if login and not self._me.is_login(login, bot=False):
            summary = f"bot_login is {self._me.login}, but the token belongs to {login}"
            return Probe(ok=False, summary=summary, scopes=scopes)
        skew_s = _skew_s(answer, now)
        if skew_s > MAX_SKEW_S:
            summary = f"This machine's clock and GitHub's are {skew_s:.0f} s apart"
            return Probe(ok=False, summary=summary, scopes=scopes)
        left = answer.headers.get("x-ratelimit-remaining", "?")
        who = f"as {login}" if login else "as an App's installation"
        return Probe(ok=True, summary=f"Signed in {who}, {left} calls left", scopes=scopes)

    async def start(self, context: ConnectorContext) -> None:
        """Resolve the secrets and make the client."""
        secret = self._settings.secret
        self._secret = context.secret(secret) if secret else None
        token = context.secret(self._settings.token)
        self._context = context
        self._client = GitHubClient(
            self._settings.api_url, token, timeout_s=self._settings.timeout_s
        )
        self._sender = CommentSender(self._client, self._me, context.now)
        self._feeds = Feeds(self._client, self._me, context)
        self._recovery = Recovery(self._client, context)
        self._logs = Logs(self._client, context)

    async def listen(self) -> None:
        """Poll the repositories, if that is wanted; see :class:`Poller`."""
        feeds, context = self._reading()
        if self._settings.poll_s:
            self._poller = Poller(feeds, context, self._settings.repositories)
            await self._poller.run(self._settings.poll_s)

    async def stop(self, timeout_s: float) -> None:
        """Close the client; a call under way is cut."""
        client, self._client, self._sender = self._client, None, None
        self._secret = None
        if client is not None:
            async with asyncio.timeout(timeout_s):
                await client.close()

    async def backfill(self, since: str | None, until: datetime) -> AsyncIterator[Trigger]:
        """Yield what happened in the repositories since; see :meth:`Listing.missed`."""
        if since is None:  # at the very first nothing was missed
            return
        feeds, context = self._reading()
        if self._recovery is not None:
            began = datetime.fromisoformat(since)
            count = await self._recovery.redeliver(self._settings.repositories, began)
            context.log.info("github.redelivery_asked", extra={"count": count})
        missed = Listing(feeds).missed(self._settings.repositories, since, until)
        async for trigger in missed:
            yield trigger

    async def receive(self, request: InboundRequest) -> Sequence[Trigger]:
        """Verify a webhook and translate it; ``ping`` and events we don't know make no trigger.

        Raises:
            TriggerRejectedError: 401, 413, 415 or 400, each with its code.
            ConnectorNotReadyError: not started.
        """
        if self._secret is None:
            raise ConnectorNotReadyError("The source is not started")
        delivery = open_delivery(
            request, self._secret, max_body_bytes=self._settings.max_body_bytes
        )
        told: Sequence[Trigger] = translate(
            delivery, source=self._source, me=self._me, only=self._only
        )
        if self._logs is not None:
            told = tuple([await self._logs.explained(one) for one in told])
        asked = self._recovery.asked if self._recovery else set()
        return [late(one) for one in told] if delivery.guid in asked else told

    async def send(self, effect: Effect) -> Receipt:
        """Post a comment once; see :class:`CommentSender` for what it raises."""
        if self._sender is None:
            raise ConnectorNotReadyError("The source is not started")
        return await self._sender.send(effect)

    async def neighbours(self, trigger: Trigger, before: int, after: int) -> Neighbours:
        """Return the comments around a comment, of the same issue or pull request.

        Around a comment on a line: its thread, and what was said near that line.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: GitHub can't be reached, or a limit holds.
        """
        code = trigger.context.code
        if code is None or code.number is None:
            return Neighbours(whole=True)
        feeds, _ = self._reading()
        listing, number = Listing(feeds), str(code.number)
        if trigger.kind.startswith("review_comment."):
            said = await listing.beside(code.repository, number, trigger)
        else:
            said = await listing.around(code.repository, number)
        own = dict(trigger.context.facts).get("native_id", "")
        at = next((n for n, one in enumerate(said) if one.id == own), len(said))
        later = said[at + 1 :][:after]
        return Neighbours(
            before=tuple(said[max(0, at - before) : at]), after=tuple(later), whole=True
        )

    def capabilities(self) -> Capabilities:
        """Say what this connector can do."""
        return Capabilities(
            receives=self._settings.secret is not None,
            listens=bool(self._settings.poll_s),
            neighbours=True,
            # whose comments to list must be known; a poller catches up by itself
            lists=bool(self._only) and not self._settings.poll_s,
            destinations=KINDS,
            max_text_chars=MAX_BODY_CHARS * (MAX_PARTS - 1),
            max_body_bytes=self._settings.max_body_bytes,
        )

    def health(self) -> Health:
        """Say when a poll was last answered, and what the poller could not catch up with."""
        if self._poller is None:
            return Health()
        return Health(heard_at=self._poller.heard_at, gap=self._poller.gap)

    def _reading(self) -> tuple[Feeds, ConnectorContext]:
        if self._feeds is None or self._context is None or self._client is None:
            raise ConnectorNotReadyError("The source is not started")
        return self._feeds, self._context

    def _started(self) -> tuple[GitHubClient, ConnectorContext]:
        if self._client is None or self._context is None:
            raise ConnectorNotReadyError("The source is not started")
        return self._client, self._context


def _login(answer: Answer) -> str:
    found = answer.value.get("login") if isinstance(answer.value, dict) else None
    return found if isinstance(found, str) else ""


def _skew_s(answer: Answer, now: datetime) -> float:
    try:
        theirs = parsedate_to_datetime(answer.headers.get("date", ""))
    except ValueError:
        return 0.0
    return abs((theirs - now).total_seconds()) if theirs.tzinfo else 0.0
