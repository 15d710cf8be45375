"""The webhook connector keeps the contract of all connectors."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from upright.api import Connector, InboundRequest, SecretRef
from upright.testing.context import MemoryContext
from upright.testing.contract import ConnectorContract
from upright.testing.outside import Outside, Said
from upright_webhook.connector import WebhookConnector
from upright_webhook.settings import Mapping, Scheme, WebhookSettings
from upright_webhook.verify import sign

SECRET: Final = "whsec_bm90IGEgc2VjcmV0IGF0IGFsbA=="


class Sender(Outside):
    """A service that signs by Standard Webhooks; its edits are events of another kind."""

    def __init__(self, context: MemoryContext) -> None:
        self._context = context
        self._numbers = itertools.count(1)

    def connector(self) -> Connector:
        mapped = Mapping(
            kind="{kind}",
            title="{text}",
            thread="{thread}",
            occurred_at="{at}",
            skip_unless="{text}",
        )
        settings = WebhookSettings(
            scheme=Scheme.STANDARD,
            secret=SecretRef("s"),
            map=mapped,
            dedupe=("{header:webhook-id}",),
            max_body_bytes=200_000,
        )
        return WebhookConnector("contract", settings)

    async def say(self, text: str) -> Said:
        return self._said("note.made", text)

    def sign(self, body: bytes) -> InboundRequest:
        native = f"msg_{next(self._numbers)}"
        at = int(self._context.now().timestamp())
        headers = sign(Scheme.STANDARD, SECRET, body, at=at, id_=native)
        return InboundRequest(headers={**headers, "content-type": "application/json"}, body=body)

    def _said(self, kind: str, text: str) -> Said:
        told = {"kind": kind, "text": text, "thread": "t", "at": self._context.now().isoformat()}
        request = self.sign(json.dumps(told, ensure_ascii=False).encode())
        return Said(native=request.headers["webhook-id"], requests=(request,))


@pytest.mark.feature("webhook.contract")
class TestWebhookContract(ConnectorContract):
    """Signed requests, one after the other."""

    @asynccontextmanager
    async def outside(self, context: MemoryContext) -> AsyncIterator[Outside]:
        context.secrets["s"] = SECRET
        yield Sender(context)
