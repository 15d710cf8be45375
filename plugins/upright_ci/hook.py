"""Hook: the connector of one source that posts to us and is never called back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime

from upright.api import (
    Capabilities,
    Connector,
    ConnectorContext,
    ConnectorNotReadyError,
    Effect,
    InboundRequest,
    PermanentSendError,
    Probe,
    Receipt,
    Secret,
    Trigger,
    TriggerRejectedError,
)
from upright.kit.quiet import Quiet
from upright_ci import generic, junit, presets, upload
from upright_ci.keys import Place
from upright_ci.settings import CiSettings, Provider
from upright_ci.verify import verify

_OFF_THE_LOOP_BYTES = 65_536  # a larger report is read in a thread


class HookConnector(Quiet):
    """One source: a secret, and how to read what is posted."""

    def __init__(self, source: str, settings: CiSettings) -> None:
        self._source = source
        self._settings = settings
        self._reading = presets.reading(settings)
        self._context: ConnectorContext | None = None
        self._secret: Secret | None = None

    async def validate(self) -> Probe:
        """Say that it waits: there is nobody to call."""
        self._started()
        return Probe(ok=True, summary=f"Waits for {self._settings.provider.value} to post")

    async def start(self, context: ConnectorContext) -> None:
        """Resolve the secret."""
        self._secret = context.secret(self._settings.secret)
        self._context = context

    async def stop(self, timeout_s: float) -> None:
        """Forget the secret."""
        del timeout_s
        self._secret = self._context = None

    async def backfill(self, since: str | None, until: datetime) -> AsyncIterator[Trigger]:
        """Yield nothing: who only posts can't be asked."""
        del since, until
        for trigger in tuple[Trigger, ...]():
            yield trigger

    async def receive(self, request: InboundRequest) -> Sequence[Trigger]:
        """Verify a request and read it: one trigger.

        Raises:
            TriggerRejectedError: 401 it does not know the secret, 413, 400.
            ConnectorNotReadyError: not started.
        """
        context, secret = self._started()
        if len(request.body) > self._settings.max_body_bytes:
            reason = "The body is over the cap of this source"
            raise TriggerRejectedError(reason, status=413, code="trigger.too_large")
        verify(request, secret, self._settings, context.now())
        if self._settings.provider is Provider.JUNIT:
            made = await self._report(request)
            raw_type = "application/xml"
        else:
            made, raw_type = self._json(request), "application/json"
        return (replace(made, raw=request.body, raw_type=raw_type),)

    async def _report(self, request: InboundRequest) -> Trigger:
        words, body = upload.said(request), request.body
        large = len(body) > _OFF_THE_LOOP_BYTES
        report = await asyncio.to_thread(junit.read, body) if large else junit.read(body)
        if not words["check"]:
            words = {**words, "check": self._settings.check}
        return upload.trigger(report, words, self._place(words["repository"]), body)

    def _json(self, request: InboundRequest) -> Trigger:
        payload = generic.decode(request.body)
        repository = generic.repository_of(payload, self._reading.mapping)
        place = self._place(request.query.get("repository", "") or repository)
        return generic.trigger(payload, self._reading, place, self._settings.check)

    def _place(self, repository: str) -> Place:
        return Place(
            host=self._settings.code_host or f"ci:{self._source}",
            repository=repository or self._settings.repository or self._source,
            default_branches=frozenset(self._settings.default_branches),
            sign="!" if self._settings.code_host.startswith("gitlab:") else "#",
        )

    async def send(self, effect: Effect) -> Receipt:
        """Refuse: there is nowhere to send to."""
        del effect
        raise PermanentSendError("A source that only posts takes no answers")

    def capabilities(self) -> Capabilities:
        """Say what this connector can do."""
        return Capabilities(receives=True, max_body_bytes=self._settings.max_body_bytes)

    def _started(self) -> tuple[ConnectorContext, Secret]:
        if self._context is None or self._secret is None:
            raise ConnectorNotReadyError("The source is not started")
        return self._context, self._secret


def make(source: str, settings: CiSettings) -> Connector:
    """Make the connector of a source; the plugin's own module loads this one when it is asked."""
    return HookConnector(source, settings)
