"""The hub was away: what GitLab did meanwhile comes late, in order and once (B2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from fixtures.connector import MemoryContext
from fixtures.gitlab import PROJECT, SECRETS, sandbox, settings
from fixtures.still_hub import StillHub
from upright.api import Trigger
from upright.kit.late import late
from upright.store.tables import TRIGGER
from upright_ci.gitlab.connector import GitLabConnector
from upright_ci.gitlab.sandbox.server import Sandbox

MISSED = 200
EDITED = 40
HISTORY = 50


@dataclass
class Scene:
    """A connector, its GitLab, and the hub that takes what it tells."""

    hub: StillHub
    gitlab: Sandbox
    context: MemoryContext
    connector: GitLabConnector

    async def hear(self) -> None:
        """Take in all webhooks that nobody has delivered yet."""
        for request in self.gitlab.story.untold:
            for trigger in await self.connector.receive(request):
                await self.hub.accept(trigger)
        self.gitlab.story.untold.clear()

    async def catch_up(self, since: str | None) -> Sequence[Trigger]:
        found = self.connector.backfill(since, self.context.now())
        told = [late(trigger) async for trigger in found]
        await self.hub.accept(*told)
        return told

    async def stored(self) -> list[tuple[str, str]]:
        rows = await self.hub.rows(TRIGGER)
        return [(str(row["kind"]), str(row["occurred_at_ms"])) for row in rows]


async def scene(hub: StillHub, gitlab: Sandbox, context: MemoryContext) -> Scene:
    connector = GitLabConnector("gh", settings(api_url=gitlab.url))
    await connector.start(context)
    return Scene(hub=hub, gitlab=gitlab, context=context, connector=connector)


@pytest.mark.feature("ci.catch_up")
@pytest.mark.clause("B2.3", "B2.2")
@pytest.mark.timeout(90)  # some hundred calls over real sockets
async def test_what_happened_while_the_hub_was_away_comes_late_in_order_and_once(
    hub: StillHub,
) -> None:
    context = MemoryContext(source="gh", secrets=dict(SECRETS))
    async with sandbox(context) as gitlab:
        on = await scene(hub, gitlab, context)
        story = gitlab.story
        project = story.project(PROJECT)
        request = story.request(project, "Change the clock", "fix", "a" * 40)
        story.note(request, "heard in time", "ann")
        await on.hear()
        context.pass_time(3600)
        before, since = len(await on.stored()), context.now().isoformat()

        # away: notes, changed notes, pipelines; a few webhooks come through twice all the same
        for number in range(MISSED):
            context.pass_time(60)
            story.note(request, f"missed {number}", "ann")
        for note in list(story.world.notes.values())[1 : EDITED + 1]:
            context.pass_time(60)
            story.edit(note.id, "changed")
        context.pass_time(60)
        pipeline, _ = story.begin(project, "fix", "b" * 40)
        context.pass_time(60)
        story.end(pipeline, "failed", trace="AssertionError: 1 != 2\n")
        told = await on.catch_up(since)

        kinds = [one.kind for one in told]
        assert kinds.count("comment.created") == MISSED
        assert kinds.count("ci.failed") == 1
        assert all(("late", "yes") in one.context.facts for one in told)
        moments = [one.occurred_at for one in told if one.occurred_at]
        assert moments == sorted(moments)
        assert dict(told[-1].context.facts)["error"] == "AssertionError: 1 != 2"

        # the webhooks arrive after all, and the listing is read again: nothing is told twice
        after = await on.stored()
        assert len(after) == before + len(told)
        story.untold = [one for one in story.untold if b'"action": "update"' not in one.body]
        story.untold = [one for one in story.untold if b'"status": "running"' not in one.body]
        await on.hear()
        await on.catch_up(since)
        assert await on.stored() == after
        await on.connector.stop(1)


@pytest.mark.parametrize("cursor", ["", "no time at all", "2026-06-01T10:00:00"])
async def test_a_cursor_that_is_lost_replays_nothing_and_is_said(
    hub: StillHub, cursor: str, caplog: pytest.LogCaptureFixture
) -> None:
    context = MemoryContext(source="gh", secrets=dict(SECRETS))
    async with sandbox(context) as gitlab:
        on = await scene(hub, gitlab, context)
        gitlab.story.request(gitlab.story.project(PROJECT), "Old", "fix", "a" * 40)
        assert await on.catch_up(cursor) == []
        assert on.connector.health().gap
        assert [one.message for one in caplog.records].count("gitlab.cursor_lost") == 1
        await on.connector.stop(1)


async def test_at_the_very_first_no_history_is_told(hub: StillHub) -> None:
    context = MemoryContext(source="gh", secrets=dict(SECRETS))
    async with sandbox(context) as gitlab:
        on = await scene(hub, gitlab, context)
        request = gitlab.story.request(gitlab.story.project(PROJECT), "Old", "fix", "a" * 40)
        for number in range(HISTORY):
            gitlab.story.note(request, f"long ago {number}", "ann")
        assert await on.catch_up(None) == []
        assert await on.stored() == []
        await on.connector.stop(1)


async def test_what_was_changed_long_after_it_was_made_is_told_as_changed(hub: StillHub) -> None:
    context = MemoryContext(source="gh", secrets=dict(SECRETS))
    async with sandbox(context) as gitlab:
        on = await scene(hub, gitlab, context)
        request = gitlab.story.request(gitlab.story.project(PROJECT), "New", "fix", "a" * 40)
        note, _ = gitlab.story.note(request, "Please lok", "ann")
        await on.hear()
        context.pass_time(3600)
        since = context.now().isoformat()
        context.pass_time(600)
        gitlab.story.edit(note.id, "Please look")
        (told,) = await on.catch_up(since)
        assert (told.kind, told.context.edit_of) == ("comment.edited", f"note:{note.id}")
        await on.hear()
        assert [kind for kind, _ in await on.stored()] == [
            "pr.opened",
            "comment.created",
            "comment.edited",
        ]
        await on.connector.stop(1)
