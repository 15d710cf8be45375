"""``upright show`` and a model's ``read``: one shape for both (B7.1)."""

from __future__ import annotations

import pytest

from fixtures.web_hub import Client


@pytest.mark.clause("B7.1")
@pytest.mark.parametrize("name", ["tr_red", "th_pr", "se_fix", "wk_fix", "wt_ci", "jb_test"])
async def test_people_are_shown_what_a_model_reads(client: Client, name: str) -> None:
    shown = (await client.read(f"/v1/show/{name}"))["shown"]
    assert list(shown)[:4] == ["id", "kind", "trust", "summary"]
    assert shown["id"] == name
    assert shown["relatives"]


@pytest.mark.clause("B7.5")
async def test_from_an_item_the_links_lead_on(client: Client) -> None:
    item = (await client.read("/v1/show/wk_fix"))["shown"]
    (session,) = item["relatives"]["session"]
    back = (await client.read(f"/v1/show/{session}"))["shown"]
    assert "wk_fix" in back["relatives"]["work"]


async def test_what_is_no_thing_to_be_read_is_shown_as_before(client: Client) -> None:
    assert "shown" not in await client.read("/v1/show/dv_box")
