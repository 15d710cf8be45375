"""The connector of one GitLab source."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime

from upright.api import (
    Capabilities,
    Connector,
    ConnectorContext,
    ConnectorNotReadyError,
    Effect,
    Health,
    InboundRequest,
    PermanentSendError,
    Probe,
    Receipt,
    Secret,
    Trigger,
    TriggerRejectedError,
)
from upright.kit.payload import Json
from upright.kit.quiet import Quiet
from upright_ci import generic
from upright_ci.gitlab.client import GitLabClient
from upright_ci.gitlab.event import Event, place_of
from upright_ci.gitlab.listing import Listing
from upright_ci.gitlab.logs import tails
from upright_ci.gitlab.runs import failed_jobs
from upright_ci.gitlab.sender import MAX_TEXT_CHARS, NoteSender
from upright_ci.gitlab.translate import TABLE, translate
from upright_ci.settings import CiSettings
from upright_ci.verify import verify


class GitLabConnector(Quiet):
    """One source: the token of its webhooks and, to answer, that of the API.

    GitLab switches a hook off that is answered 4xx. So only a wrong token is refused; whatever
    else we don't know, don't want or can't read is taken, counted (``ignored``) and logged.
    """

    def __init__(self, source: str, settings: CiSettings) -> None:
        self._source = source
        self._settings = settings
        self._only = frozenset(name.lower() for name in settings.projects)
        self._context: ConnectorContext | None = None
        self._client: GitLabClient | None = None
        self._sender: NoteSender | None = None
        self._secret: Secret | None = None
        self._heard_at: datetime | None = None
        self._gap = ""
        self.ignored: Counter[str] = Counter()

    async def validate(self) -> Probe:
        """Sign in and look whose token it is.

        Raises:
            ConnectorAuthFailedError: the token is refused.
            ConnectorNotReadyError: GitLab can't be reached, or a limit holds.
        """
        self._started()
        if self._client is None:
            return Probe(ok=True, summary="Waits for webhooks; without a token it can't answer")
        found = (await self._client.read("/user")).value
        login = str(found.get("username", "")) if isinstance(found, dict) else ""
        if login.lower() != self._settings.bot_login.lower():
            said = f"bot_login is {self._settings.bot_login}, but the token belongs to {login}"
            return Probe(ok=False, summary=said)
        return Probe(ok=True, summary=f"Signed in as {login}")

    async def start(self, context: ConnectorContext) -> None:
        """Resolve the secrets and make the client."""
        self._secret = context.secret(self._settings.secret)
        if self._settings.token is not None:
            token, settings = context.secret(self._settings.token), self._settings
            self._client = GitLabClient(settings.api_url, token, timeout_s=settings.timeout_s)
            self._sender = NoteSender(self._client, settings.bot_login.strip(), context.now)
        self._context = context

    async def stop(self, timeout_s: float) -> None:
        """Close the client; a call under way is cut."""
        client, self._client, self._sender = self._client, None, None
        self._secret = self._context = None
        if client is not None:
            async with asyncio.timeout(timeout_s):
                await client.close()

    async def backfill(self, since: str | None, until: datetime) -> AsyncIterator[Trigger]:
        """Yield pipelines, merge requests and notes that no webhook brought."""
        del until  # what came meanwhile is no harm: its webhook will be refused
        if since is None or self._client is None:  # at the very first nothing was missed
            return
        began = self._moment(since)
        if began is None:
            return
        listing = Listing(
            client=self._client,
            context=self._started()[0],
            login=self._settings.bot_login.strip(),
            default_branches=frozenset(self._settings.default_branches),
        )
        for trigger in await listing.missed(self._settings.projects, began):
            yield trigger

    def _moment(self, since: str) -> datetime | None:
        """Read the cursor; one that is no moment is lost: nothing is replayed, and it is said."""
        try:
            began: datetime | None = datetime.fromisoformat(since)
        except ValueError:
            began = None
        if began is not None and began.tzinfo is not None:
            return began
        self._gap = "Where the last listing got to is lost; what happened since then may be missing"
        self._started()[0].log.warning("gitlab.cursor_lost", extra={"since": since[:100]})
        return None

    async def receive(self, request: InboundRequest) -> Sequence[Trigger]:
        """Verify a webhook and translate it; everything but a wrong token is taken.

        Raises:
            TriggerRejectedError: 401: the token is missing or wrong. 413: over our cap.
            ConnectorNotReadyError: not started.
        """
        context, secret = self._started()
        if len(request.body) > self._settings.max_body_bytes:
            reason = "The body is over the cap of this source"
            raise TriggerRejectedError(reason, status=413, code="trigger.too_large")
        verify(request, secret, self._settings, context.now())
        self._heard_at = context.now()
        try:
            return await self._translated(request, context)
        except TriggerRejectedError as error:
            self._ignore("unreadable", error.reason)
            return ()

    async def _translated(
        self, request: InboundRequest, context: ConnectorContext
    ) -> tuple[Trigger, ...]:
        value = generic.decode(request.body)
        payload = Json(value if isinstance(value, dict) else {})
        kind = payload.maybe_text("object_kind")
        if kind not in TABLE:
            return self._ignore("unknown", kind or payload.maybe_text("event_name"))
        place = place_of(payload, frozenset(self._settings.default_branches))
        if self._only and place.repository.lower() not in self._only:
            return self._ignore("project", place.repository)
        jobs = failed_jobs(payload) if kind in {"pipeline", "build"} else ()
        logs = await tails(self._client, place.repository, jobs, context.log)
        login = self._settings.bot_login.strip()
        event = Event(source=self._source, payload=payload, place=place, login=login)
        made = translate(kind, event, logs)
        if made is None:
            return self._ignore("no news", kind)
        key = request.headers.get("idempotency-key", "").strip()
        keys = (*((f"delivery:{key}",) if key else ()), *made.dedupe)
        return (replace(made, dedupe=keys, raw=request.body),)

    def _ignore(self, why: str, what: str) -> tuple[Trigger, ...]:
        self.ignored[why] += 1
        self._started()[0].log.info("gitlab.ignored", extra={"why": why, "what": what[:200]})
        return ()

    async def send(self, effect: Effect) -> Receipt:
        """Post a note once; see :class:`NoteSender` for what it raises."""
        self._started()
        if self._sender is None:
            raise PermanentSendError("Without a token nothing can be sent to GitLab")
        return await self._sender.send(effect)

    def capabilities(self) -> Capabilities:
        """Say what this connector can do."""
        speaks = self._settings.token is not None
        return Capabilities(
            receives=True,
            lists=speaks and bool(self._only),  # which projects to list must be known
            destinations=("note",) if speaks else (),
            max_text_chars=MAX_TEXT_CHARS,
            max_body_bytes=self._settings.max_body_bytes,
        )

    def health(self) -> Health:
        """Say when a webhook with the right token came last, and what may have been missed."""
        return Health(heard_at=self._heard_at, gap=self._gap)

    def _started(self) -> tuple[ConnectorContext, Secret]:
        if self._context is None or self._secret is None:
            raise ConnectorNotReadyError("The source is not started")
        return self._context, self._secret


def make(source: str, settings: CiSettings) -> Connector:
    """Make the connector of a source; the plugin's own module loads this one when it is asked."""
    return GitLabConnector(source, settings)
