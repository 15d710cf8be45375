"""Oversight over HTTP: what waits, what was sent, how it is; and an operator's hand."""

from __future__ import annotations

import pytest

from fixtures.web_hub import Client
from upright.web.parts import RefusedError


async def test_waits_say_what_for_until_when_and_what_then(client: Client) -> None:
    (row,) = await client.read("/v1/waits")
    assert (row["id"], row["kind"], row["state"]) == ("wt_ci", "external", "open")
    assert {"why", "since_ms", "until_ms", "then"} <= set(row)
    assert len(await client.read("/v1/waits?all=1")) >= 1


async def test_effects_are_listed_by_state_and_shown_with_their_story(client: Client) -> None:
    rows = await client.read("/v1/outbox")
    assert "ob_fixed" in [row["id"] for row in rows]
    assert {row["state"] for row in await client.read("/v1/outbox?state=sent")} == {"sent"}
    shown = await client.read("/v1/outbox/ob_f")
    assert (shown["id"], shown["request"]) == ("ob_fixed", None)
    assert isinstance(shown["events"], list)


async def test_figures_name_each_queue_and_what_is_stalled(client: Client) -> None:
    said = await client.read("/v1/stats?window=60")
    assert said["window_s"] == 60
    assert set(said["ages_s"]) == {"ready_session", "pending_effect", "queued_job", "open_request"}
    assert {"triggers", "turns", "effects_committed", "effects_settled"} == set(said["rates"])
    assert said["stalled"][0]["id"] == "wk_lost"


@pytest.mark.parametrize(
    ("path", "did"),
    [
        ("/v1/waits/wt_c/wake", ("wake", "wt_ci")),
        ("/v1/waits/wt_c/cancel", ("cancel_wait", "wt_ci")),
        ("/v1/work/wk_f/cancel", ("cancel_work", "wk_fix")),
        ("/v1/work/wk_f/unblock", ("unblock", "wk_fix")),
        ("/v1/sessions/se_f/stop", ("stop", "se_fix")),
        ("/v1/outbox/ob_f/retry", ("retry_effect", "ob_fixed", False)),
        ("/v1/outbox/ob_f/retry?yes=1", ("retry_effect", "ob_fixed", True)),
        ("/v1/outbox/ob_f/discard", ("discard_effect", "ob_fixed")),
    ],
)
async def test_an_operators_hand_reaches_what_it_is_laid_on(
    client: Client, path: str, did: tuple[object, ...]
) -> None:
    status, said = await client.post(path)
    assert (status, said["did"]) == (200, did[0])
    assert client.behind.asked[-1] == did


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/waits/wt_nope/wake", 404, "store.unknown_id"),
        ("/v1/waits/wk_fix/wake", 404, "id.other_kind"),
        ("/v1/work/se_fix/cancel", 404, "id.other_kind"),
        ("/v1/outbox/tr_red/retry", 404, "id.other_kind"),
    ],
)
async def test_an_id_of_something_else_is_not_found(
    client: Client, path: str, status: int, code: str
) -> None:
    got, said = await client.post(path)
    assert (got, said["code"]) == (status, code)


async def test_a_state_that_is_none_is_refused(client: Client) -> None:
    got, said = await client.get("/v1/outbox?state=lost")
    assert (got, said["code"]) == (400, "query.state")
    got, said = await client.get("/v1/stats?window=soon")
    assert (got, said["code"]) == (400, "query.number")


async def test_what_is_refused_says_why(client: Client) -> None:
    client.behind.raises = RefusedError("it may be visible already")
    got, said = await client.post("/v1/outbox/ob_f/retry")
    assert (got, said["detail"]) == (403, "it may be visible already")
