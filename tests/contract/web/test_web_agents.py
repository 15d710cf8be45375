from __future__ import annotations

import pytest

from fixtures.web_hub import Client


async def test_every_hub_has_a_router_and_a_developer_once_its_homes_are_in_step(
    client: Client,
) -> None:
    assert await client.read("/v1/agents") == []
    status, synced = await client.post("/v1/agents/sync")
    assert status == 200
    assert [one["agent"] for one in synced] == ["developer", "router"]
    listed = await client.read("/v1/agents")
    assert [(one["name"], one["skills"], one["open_items"]) for one in listed] == [
        ("developer", 2, 0),
        ("router", 1, 0),
    ]
    assert all(one["role"] for one in listed)


async def test_an_agent_is_made_from_a_template_and_shown_with_what_its_skills_declare(
    client: Client,
) -> None:
    status, made = await client.post("/v1/agents", {"name": "mia", "template": "reviewer"})
    assert (status, made["template"]) == (200, "reviewer")
    one = await client.read("/v1/agents/mia")
    assert [file["path"] for file in one["files"]] == [
        "AGENTS.md",
        "skills/review-a-change/SKILL.md",
    ]
    assert {file["trust"] for file in one["files"]} == {"operator"}
    assert one["catalogue"][0]["name"] == "review-a-change"
    assert one["guide"].startswith("---\ndescription: Reads a pull request")
    assert (client.behind.folder / "agents" / "mia" / "AGENTS.md").read_text() == one["guide"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "../mia", "template": "reviewer"}, 422, "core.invalid"),
        ({"name": "mia", "template": "nobody"}, 404, "store.unknown_id"),
        ({"name": "developer", "template": "developer"}, 409, "store.not_now"),
    ],
)
async def test_an_agent_that_cannot_be_made_is_refused(
    client: Client, body: dict[str, str], status: int, code: str
) -> None:
    await client.post("/v1/agents/sync")
    answered, said = await client.post("/v1/agents", body)
    assert (answered, said["code"]) == (status, code)
    assert len(await client.read("/v1/agents")) == 2


async def test_nobody_of_that_name_is_not_found(client: Client) -> None:
    status, said = await client.get("/v1/agents/nobody")
    assert (status, said["code"]) == (404, "store.unknown_id")
