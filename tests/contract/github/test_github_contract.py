"""GitHub keeps the contract of connectors, against its sandbox over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import pytest

from fixtures.github import BOT, SECRET, TOKEN, settings, signed
from upright.api import Connector, Destination, InboundRequest, SecretRef
from upright.testing.context import MemoryContext
from upright.testing.contract import ConnectorContract
from upright.testing.outside import CannotError, Outside, Said
from upright_github.connector import GitHubConnector
from upright_github.sandbox.faults import RestFault, RestRule
from upright_github.sandbox.postman import Hook
from upright_github.sandbox.server import Options, Sandbox, running
from upright_github.sandbox.story import Told
from upright_github.sandbox.world import Issue

REPO = "acme/app"
NOWHERE = "http://127.0.0.1:9/"  # the deliveries are taken from the postman, not from a port


@dataclass(slots=True)
class GitHub(Outside):
    """One repository with one issue in the sandbox."""

    sandbox: Sandbox
    context: MemoryContext
    poll_s: float = 0.0

    def connector(self) -> Connector:
        keys = settings(
            api_url=self.sandbox.url,
            repositories=(REPO,),
            timeout_s=30.0,
            poll_s=self.poll_s,
            secret=None if self.poll_s else SecretRef("env:S"),
        )
        return GitHubConnector("github", keys)

    async def say(self, text: str) -> Said:
        return self._said(self.sandbox.story.comment(self._issue(), text, "ann"))

    async def say_as_us(self, text: str) -> Said:
        return self._said(self.sandbox.story.comment(self._issue(), text, BOT))

    async def edit(self, said: Said, text: str) -> Said:
        self.context.pass_time(1)  # GitHub's times are whole seconds
        comment = self.sandbox.world.comment(int(said.native))
        return self._said(self.sandbox.story.edit_comment(comment, text, "ann"))

    async def delete(self, said: Said) -> Said:
        if self.poll_s:
            raise CannotError("the API does not tell what was deleted")
        comment = self.sandbox.world.comment(int(said.native))
        return self._said(self.sandbox.story.delete_comment(comment, "ann"))

    def sign(self, body: bytes) -> InboundRequest:
        return signed("issue_comment", body)

    def destination(self) -> Destination:
        address = (("repo", REPO), ("number", "1"))
        return Destination(source="github", kind="comment", address=address)

    async def visible(self) -> list[str]:
        comments = self.sandbox.world.comments_of(REPO, 1)
        return [one.body for one in comments if one.author == BOT]

    async def limit(self) -> float:
        self._fault(RestFault.SECONDARY_RETRY_AFTER)
        return 7.0

    async def lose_answer(self) -> None:
        self._fault(RestFault.DROP, done=True)

    async def hang(self) -> None:
        for _ in range(10):
            self._fault(RestFault.HANG, method="GET")

    def _issue(self) -> Issue:
        return self.sandbox.world.issue(REPO, 1)

    def _fault(self, fault: RestFault, *, done: bool = False, method: str = "POST") -> None:
        rule = RestRule(fault=fault, done=done, method=method, count=1)
        self.sandbox.rest.faults.rest.append(rule)

    def _said(self, told: Told) -> Said:
        shape, guids = told
        if self.poll_s:
            return Said(native=str(shape["id"]))
        deliveries = [self.sandbox.story.postman.delivery(guid) for guid in guids]
        requests = tuple(
            InboundRequest(
                headers={name.lower(): value for name, value in one.headers().items()},
                body=one.body,
            )
            for one in deliveries
        )
        return Said(native=str(shape["id"]), requests=requests)


@pytest.mark.feature("github.contract")
class TestGitHub(ConnectorContract):
    poll_s: ClassVar[float] = 0.0

    @asynccontextmanager
    async def outside(self, context: MemoryContext) -> AsyncIterator[Outside]:
        context.secrets |= {"env:S": SECRET, "env:T": TOKEN}
        numbers = iter(range(10_000))
        options = Options(token=TOKEN, secret=SECRET, login=BOT)
        async with running(
            options, now=context.service_now, new_guid=lambda: f"g{next(numbers)}"
        ) as sandbox:
            world = sandbox.world
            world.add_repository(REPO, "", default_branch="main", private=False)
            sandbox.story.open_issue(
                Issue(
                    id=world.new_id(),
                    repo=REPO,
                    number=1,
                    title="It fails",
                    body="",
                    author="ann",
                    created_at=world.now() - timedelta(hours=1),
                    updated_at=world.now() - timedelta(hours=1),
                )
            )
            sandbox.story.postman.hooks[1] = Hook(id=1, url=NOWHERE, secret=SECRET)
            yield GitHub(sandbox, context, type(self).poll_s)


@pytest.mark.feature("github.polling")
class TestPolledGitHub(TestGitHub):
    """The same without a public address: it looks by itself."""

    poll_s = 30.0
    nudge_s = 30.0
