"""The sandbox as a process, and as a hub's GitLab: an act there is a webhook here."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from typing import Any, Final

from fixtures.connector import MemoryContext
from fixtures.gitlab import BOT, PROJECT, SECRETS, sandbox, settings
from fixtures.still_hub import StillHub
from fixtures.through_hub import through
from upright.api import Destination, Effect
from upright_ci.gitlab.connector import GitLabConnector

# The group that `upright sandbox` is, alone.
RUN: Final = """
import click
from upright_ci import upright_commands
group = click.Group("sandbox")
upright_commands(group)
group()
"""
RED: Final = {"project": PROJECT, "branch": "fix", "sha": "a" * 40, "trace": "error: 1 != 2\n"}


def asked(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"PRIVATE-TOKEN": "T"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        value: dict[str, Any] = json.load(answer)
    return value


def test_it_prints_its_address_serves_and_ends_well_on_sigterm() -> None:
    command = [sys.executable, "-c", RUN, "gitlab", "--token", "T", "--secret", "S"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            told = json.loads(started.stdout.readline())
            user = asked(f"{told['url']}/api/v4/user")
            assert user["username"] == "upright-bot"
            made = asked(f"{told['control']}/pipelines", RED)
            assert made["answers"] == [0, 0]  # there is no hook
            started.send_signal(signal.SIGTERM)
            assert started.wait(timeout=10) == 0
        finally:
            started.kill()


async def test_red_and_green_come_through_the_door_and_our_answer_comes_back_as_ours(
    small_hub: StillHub,
) -> None:
    context = MemoryContext(source="gh", secrets=dict(SECRETS))
    async with sandbox(context) as gitlab:
        story, connector = gitlab.story, GitLabConnector("gh", settings(api_url=gitlab.url))
        await connector.start(context)
        async with through(small_hub, connector) as door:
            story.postman.url = door.url
            project = story.project(PROJECT)
            request = story.request(project, "Change", "fix", "a" * 40)
            for status, sha in (("failed", "a" * 40), ("success", "b" * 40)):
                context.pass_time(60)
                pipeline, _ = story.begin(project, "fix", sha, iid=request.iid)
                context.pass_time(60)
                story.end(pipeline, status, trace="error: 1 != 2\n")
            assert await story.tell() == [202] * 5
            assert await story.postman.deliver(story.postman.sent[-1][0]) == 200  # told again

            to = Destination(
                source="gh",
                kind="note",
                address=(("project", PROJECT), ("on", "merge_requests"), ("iid", "1")),
            )
            effect = Effect(id="ob_1", destination=to, text="Fixed", idempotency_key="k")
            receipt = await connector.send(effect)
            assert await story.tell() == [202]
            assert await door.kinds() == [
                "pr.opened",
                "ci.started",
                "ci.failed",
                "ci.started",
                "ci.fixed",
                "comment.created",
            ]
        await connector.stop(1)
    assert receipt.provider_id.startswith("note:")
    assert gitlab.story.world.login == BOT
