"""A source that takes reports of tests keeps the contract of connectors."""

from __future__ import annotations

import hashlib
import hmac
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

import pytest

from fixtures.ci_hook import SECRET, settings
from upright.api import Connector, InboundRequest
from upright.testing.context import MemoryContext
from upright.testing.contract import ConnectorContract
from upright.testing.outside import Outside, Said
from upright_ci.hook import HookConnector
from upright_ci.settings import Verify

HEADER = "X-Signature"


@dataclass(slots=True)
class Runner(Outside):
    """A job whose tests fail with what is said, and that signs its report."""

    shas: Iterator[str] = field(default_factory=lambda: (f"{n:040x}" for n in itertools.count(1)))

    def connector(self) -> Connector:
        return HookConnector("tests", settings(verify=Verify.HMAC, header=HEADER))

    async def say(self, text: str) -> Said:
        body = (
            '<testsuite name="unit"><testcase name="t">'
            f"<failure message={quoteattr(text)}/></testcase></testsuite>"
        ).encode()
        query = {"repository": "acme/app", "branch": "fix", "sha": next(self.shas)}
        signed = self.sign(body)
        told = InboundRequest(headers=signed.headers, body=body, query=query)
        return Said(requests=(told,))

    def sign(self, body: bytes) -> InboundRequest:
        return InboundRequest(headers={HEADER.lower(): mac(body)}, body=body)


def mac(body: bytes) -> str:
    return hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()


@pytest.mark.feature("ci.contract")
class TestJUnit(ConnectorContract):
    huge_chars = 60_000

    @asynccontextmanager
    async def outside(self, context: MemoryContext) -> AsyncIterator[Outside]:
        context.secrets["env:S"] = SECRET
        yield Runner()
