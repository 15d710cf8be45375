"""The connector of one webhook source: verify, decode, translate; it never speaks by itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from upright.api import (
    Answered,
    Capabilities,
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
from upright.kit.quiet import Quiet
from upright_webhook.settings import Answer, WebhookSettings
from upright_webhook.translate import challenge, decode, translate
from upright_webhook.verify import verify


class WebhookConnector(Quiet):
    """One source, called at ``/hooks/NAME``."""

    def __init__(self, source: str, settings: WebhookSettings) -> None:
        self._source = source
        self._settings = settings
        self._context: ConnectorContext | None = None
        self._secret: Secret | None = None
        self._heard_at: datetime | None = None

    async def validate(self) -> Probe:
        """Say how requests are verified, and when the last one came."""
        self._started()
        heard = f"last heard at {self._heard_at:%Y-%m-%d %H:%M} UTC" if self._heard_at else "silent"
        scheme = self._settings.scheme
        return Probe(ok=True, summary=f"/hooks/{self._source}, verified by {scheme}, {heard}")

    async def start(self, context: ConnectorContext) -> None:
        """Resolve the secret."""
        self._secret = context.secret(self._settings.secret)
        self._context = context

    async def stop(self, timeout_s: float) -> None:
        """Forget the secret; nothing of it takes time."""
        del timeout_s
        self._secret = None

    async def receive(self, request: InboundRequest) -> Sequence[Trigger]:
        """Verify and translate a request.

        Raises:
            TriggerRejectedError: 413, 401 or 400.
            ConnectorNotReadyError: not started.
        """
        context, secret = self._started()
        settings = self._settings
        if len(request.body) > settings.max_body_bytes:
            reason = "The body is over the cap of this source"
            raise TriggerRejectedError(reason, status=413, code="trigger.too_large")
        verify(request, settings, secret, context.now())
        self._heard_at = context.now()
        source = decode(request)
        if settings.answer is Answer.CHALLENGE and (said := challenge(source, settings)):
            return Answered(text=said)
        trigger = translate(request, source, settings, self._source)
        triggers = (trigger,) if trigger else ()
        if settings.answer is Answer.TEXT:
            return Answered(triggers=triggers, text=settings.answer_text)
        return triggers

    async def send(self, effect: Effect) -> Receipt:
        """Refuse: a webhook is one way."""
        reason = f"A webhook takes no answers: {effect.destination.kind}"
        raise PermanentSendError(reason)

    def capabilities(self) -> Capabilities:
        """Say what this connector can do."""
        return Capabilities(receives=True, max_body_bytes=self._settings.max_body_bytes)

    def health(self) -> Health:
        """Say when the last verified request came."""
        return Health(heard_at=self._heard_at)

    def _started(self) -> tuple[ConnectorContext, Secret]:
        if self._context is None or self._secret is None:
            raise ConnectorNotReadyError("The source is not started")
        return self._context, self._secret
