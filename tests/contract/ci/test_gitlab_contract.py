"""GitLab keeps the contract of connectors, against its sandbox over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from fixtures.gitlab import BOT, PROJECT, SECRETS, hook, sandbox, settings
from upright.api import Connector, Destination, InboundRequest
from upright.testing.context import MemoryContext
from upright.testing.contract import ConnectorContract
from upright.testing.outside import Outside, Said
from upright_ci.gitlab.connector import GitLabConnector
from upright_ci.gitlab.sandbox.rest import Fault, Rule
from upright_ci.gitlab.sandbox.server import Sandbox
from upright_ci.gitlab.sandbox.world import Request


@dataclass(slots=True)
class GitLab(Outside):
    """One project with one merge request in the sandbox."""

    sandbox: Sandbox
    request: Request

    def connector(self) -> Connector:
        return GitLabConnector("gl", settings(api_url=self.sandbox.url, timeout_s=30.0))

    async def say(self, text: str) -> Said:
        note, told = self.sandbox.story.note(self.request, text, "ann")
        return Said(native=str(note.id), requests=(told,))

    async def say_as_us(self, text: str) -> Said:
        note, told = self.sandbox.story.note(self.request, text, BOT)
        return Said(native=str(note.id), requests=(told,))

    async def edit(self, said: Said, text: str) -> Said:
        return Said(native=said.native, requests=(self.sandbox.story.edit(int(said.native), text),))

    def forge(self, request: InboundRequest) -> Sequence[InboundRequest]:
        """GitLab's token signs nothing: without it, or with another, a request is forged."""
        bare = {key: value for key, value in request.headers.items() if key != "x-gitlab-token"}
        return (
            replace(request, headers=bare),
            replace(request, headers={**bare, "x-gitlab-token": "another"}),
        )

    def sign(self, body: bytes) -> InboundRequest:
        return hook(body)

    def destination(self) -> Destination:
        address = (("project", PROJECT), ("on", "merge_requests"), ("iid", str(self.request.iid)))
        return Destination(source="gl", kind="note", address=address)

    async def visible(self) -> list[str]:
        notes = self.sandbox.story.world.notes_on(self.request)
        return [one.body for one in notes if one.author == BOT]

    async def limit(self) -> float:
        self.sandbox.rest.faults.append(Rule(fault=Fault.LIMIT))
        return 7.0

    async def lose_answer(self) -> None:
        self.sandbox.rest.faults.append(Rule(fault=Fault.DROP, done=True))

    async def hang(self) -> None:
        self.sandbox.rest.faults += [Rule(fault=Fault.HANG, method="GET")] * 10


@pytest.mark.feature("ci.contract")
class TestGitLab(ConnectorContract):
    @asynccontextmanager
    async def outside(self, context: MemoryContext) -> AsyncIterator[Outside]:
        context.secrets |= SECRETS
        async with sandbox(context) as running:
            project = running.story.project(PROJECT)
            request = running.story.request(project, "Change the clock", "fix", "a" * 40)
            context.pass_time(3600)
            yield GitLab(running, request)
