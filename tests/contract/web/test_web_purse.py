"""Budgets, costs and endpoints over HTTP: what is taken, what is refused (B16.2)."""

from __future__ import annotations

from typing import Final

import pytest

from fixtures.web_hub import AUTH, Client
from upright.store.budgets import spend
from upright.store.ledger import Cost

A_DAY: Final = {"scope": "day", "name": "*", "measure": "tokens", "amount": "500"}


@pytest.mark.clause("B16.2")
async def test_a_cap_is_set_listed_and_cleared(client: Client) -> None:
    status, said = await client.post("/v1/budgets", A_DAY)
    assert (status, said["amount"]) == (200, 500)
    (row,) = await client.read("/v1/budgets")
    assert (row["scope"], row["used"], row["cap"], row["level"]) == ("day", 0, 500, "fine")
    status, _ = await client.post("/v1/budgets/clear", {"scope": "day", "name": "*"})
    assert (status, await client.read("/v1/budgets")) == (200, [])


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"scope": "week"}, 422, "scope.unknown"),
        ({"measure": "hours"}, 422, "measure.unknown"),
        ({"amount": "-1"}, 422, "body.fields"),
        ({"amount": "many"}, 422, "body.fields"),
        ({"amount": "9" * 17}, 422, "body.fields"),
        ({"scope": "turn"}, 403, "refused"),
    ],
)
async def test_what_is_no_cap_is_refused_with_its_code(
    client: Client, more: dict[str, str], status: int, code: str
) -> None:
    got, problem = await client.post("/v1/budgets", {**A_DAY, **more})
    assert (got, problem["code"]) == (status, code)
    assert await client.read("/v1/budgets") == []


@pytest.mark.clause("B16.2")
async def test_costs_come_by_facet_and_as_a_forecast(client: Client) -> None:
    found = await client.read("/v1/costs/by?by=item")
    assert "wk_fix" in [row["name"] for row in found["rows"]]
    assert (await client.read("/v1/costs/forecast?source=gh"))["days"] == 0
    assert (await client.get("/v1/costs/by?by=colour"))[0] == 400


async def test_a_hub_without_a_model_has_nothing_to_probe(client: Client) -> None:
    assert await client.read("/v1/models") == []
    status, problem = await client.post("/v1/models/probe", {"role": "worker"})
    assert status == 403
    assert "no model is configured" in problem["detail"]
    assert (await client.post("/v1/models/retry"))[1]["retried"] is True


async def spent(client: Client, tokens: int) -> None:
    cost = Cost(kind="model", session_id="se_fix", work_id="wk_fix", tokens_input=tokens)
    await client.behind.units.write(lambda u: spend(u, cost))


async def needs_you(client: Client, language: str) -> str:
    given = {**AUTH, "Accept": "text/html", "Cookie": f"lang={language}"}
    async with client.session.get(f"{client.url}/needs", headers=given) as response:
        assert response.status == 200
        return await response.text()


@pytest.mark.clause("B16.2")
@pytest.mark.parametrize(
    ("tokens", "en", "zh"),
    [
        (300, "", ""),
        (400, "A budget is nearly used up", "预算即将用完"),
        (500, "A budget is used up", "预算已用完"),
    ],
)
async def test_a_warning_is_where_people_look_for_what_needs_them(
    client: Client, tokens: int, en: str, zh: str
) -> None:
    await client.post("/v1/budgets", A_DAY)
    await spent(client, tokens)
    for language, said in (("en", en), ("zh", zh)):
        html = await needs_you(client, language)
        assert ("upright budget ls" in html) is bool(said)
        assert said in html


@pytest.mark.clause("B16.2")
async def test_a_budget_that_was_raised_warns_no_more(client: Client) -> None:
    await client.post("/v1/budgets", A_DAY)
    await spent(client, 450)
    await client.post("/v1/budgets", {**A_DAY, "amount": "5000"})
    assert "upright budget ls" not in await needs_you(client, "en")
