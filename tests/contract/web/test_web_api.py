"""The JSON API: what the CLI reads and does, over a real database."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fixtures.web_hub import AUTH, Client
from upright.api import Actor, Health, Message
from upright.core.errors import StaleError
from upright.core.mandate import Trust
from upright.core.talk import Around, Near
from upright.web.parts import RefusedError


@pytest.mark.parametrize(
    ("path", "ids"),
    [
        ("/v1/inbox", ["tr_green", "tr_star", "tr_red"]),
        ("/v1/inbox?limit=1", ["tr_green"]),
        ("/v1/inbox?before=2", ["tr_red"]),
        ("/v1/inbox?disposition=ignored", ["tr_star"]),
        ("/v1/work", ["wk_fix"]),
        ("/v1/work?open=1", ["wk_fix"]),
        ("/v1/sessions", ["se_router", "se_fix"]),
        ("/v1/requests", ["rq_branch"]),
        ("/v1/requests?all=1", ["rq_branch", "rq_done"]),
        ("/v1/devices", ["dv_box"]),
    ],
)
async def test_lists(client: Client, path: str, ids: list[str]) -> None:
    assert [each["id"] for each in await client.read(path)] == ids


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("/v1/show/tr_r", "trigger", "tr_red"),
        ("/v1/show/th_", "thread", "th_pr"),
        ("/v1/show/se_f", "session", "se_fix"),
        ("/v1/show/wk_", "work", "wk_fix"),
        ("/v1/show/wt_c", "wait", "wt_ci"),
        ("/v1/show/jb_t", "job", "jb_test"),
        ("/v1/show/ob_f", "outbox", "ob_fixed"),
        ("/v1/show/rq_b", "request", "rq_branch"),
        ("/v1/show/dv_", "device", "dv_box"),
        ("/v1/show/tu_f", "turn", "tu_fix"),
        ("/v1/show/pl_", "payload", "pl_red"),
    ],
)
async def test_any_unique_beginning_shows_the_thing(
    client: Client, path: str, kind: str, name: str
) -> None:
    said = await client.read(path)
    assert (said["kind"], said["it"]["id"]) == (kind, name)
    assert "body" not in said["it"] or kind == "trigger"


async def test_one_thing_by_its_kind(client: Client) -> None:
    assert (await client.read("/v1/triggers/tr_red"))["payload"]["size"] == 12
    assert (await client.read("/v1/work/wk_fix"))["waits"][0]["id"] == "wt_ci"
    assert (await client.read("/v1/sessions/se_fix"))["entries"] == 4
    entries = await client.read("/v1/sessions/se_fix/entries?after=1&limit=1")
    assert [entry["n"] for entry in entries] == [2]
    assert (await client.read("/v1/sources"))[0]["name"] == "github"
    assert (await client.read("/v1/costs"))["total"]["usd_micros"] == 12
    assert await client.read("/v1/status") == {"hub": "hb_1"}
    assert (await client.read("/v1/devices"))[0]["online"] is True


@pytest.mark.feature("common.health")
async def test_a_source_tells_when_its_service_lived_and_what_may_be_missing(
    client: Client,
) -> None:
    client.behind.heard = Health(
        heard_at=datetime(2026, 1, 1, tzinfo=UTC), gap="the token was lost"
    )
    (source,) = await client.read("/v1/sources")
    assert (source["heard_at_ms"], source["gap"]) == (400, "the token was lost")
    assert source["alive_at_ms"] == 1_767_225_600_000


async def test_the_talk_around_a_trigger_is_the_services_or_else_the_hubs(client: Client) -> None:
    path = "/v1/triggers/tr_gr/neighbours?before=2&after=99"
    stored = await client.read(path)
    assert (stored["trigger"], stored["told_by"], stored["whole"]) == ("tr_green", "hub", False)
    assert client.behind.asked == [("around", "tr_green", 2, 20)]
    ann = Message(id="1", author=Actor(id="ann"), text="Look")
    near = Near(message=ann, trust=Trust.STRANGER)
    client.behind.talk = Around(before=(near,), whole=True, told_by="service")
    told = await client.read(path)
    assert (told["told_by"], told["before"][0]["text"]) == ("service", "Look")


@pytest.mark.parametrize("name", ["tr_red", "wk_fix"])
async def test_why_takes_a_trigger_or_the_work_that_it_opened(client: Client, name: str) -> None:
    said = await client.read(f"/v1/why/{name}")
    assert said["trigger"]["id"] == "tr_red"
    assert said["costs"]["usd_micros"] == 12


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/show/tr_nope", 404, "store.unknown_id"),
        ("/v1/show/tr_", 409, "store.ambiguous_id"),
        ("/v1/work/tr_red", 404, "id.other_kind"),
        ("/v1/why/se_fix", 404, "id.other_kind"),
        ("/v1/inbox?limit=many", 400, "query.number"),
        ("/v1/inbox?before=-1", 400, "query.number"),
        ("/v1/inbox?disposition=odd", 400, "query.disposition"),
        ("/v1/nothing", 404, "http.not_found"),
        ("/v1/sessions/se_fix/say", 405, "http.method_not_allowed"),
    ],
)
async def test_what_can_not_be_read_is_a_problem(
    client: Client, path: str, status: int, code: str
) -> None:
    got, said = await client.get(path)
    assert (got, said["code"]) == (status, code)


@pytest.mark.parametrize(
    ("path", "body", "did"),
    [
        (
            "/v1/sessions/se_f/say",
            {"text": "go on"},
            ("say", "se_fix", "go on", "operator.message"),
        ),
        (
            "/v1/sessions/se_f/interrupt",
            {"text": "stop"},
            ("say", "se_fix", "stop", "operator.interrupt"),
        ),
        (
            "/v1/sessions/se_f/ask",
            {"text": "how far?"},
            ("say", "se_fix", "how far?", "operator.question"),
        ),
        ("/v1/requests/rq_b/answer", {"text": "main"}, ("answer", "rq_branch", "main")),
        ("/v1/requests/rq_b/approve", None, ("decide", "rq_branch", True)),
        ("/v1/requests/rq_b/approve?digest=d", None, ("decide", "rq_branch", True, "d")),
        (
            "/v1/requests/rq_b/edit",
            {"text": "So.", "digest": "d"},
            ("edit", "rq_branch", "So.", "d"),
        ),
        ("/v1/requests/rq_b/ask-again", None, ("ask_again", "rq_branch")),
        ("/v1/requests/rq_b/deny", None, ("decide", "rq_branch", False)),
        ("/v1/pairings/BCDFGHJK/approve", {"bound_hash": "h"}, ("pair", "BCDFGHJK", "h")),
        ("/v1/devices/dv/revoke", None, ("revoke", "dv_box")),
        ("/v1/devices/dv/share", {"person": "ann"}, ("share", "dv_box", "ann")),
        ("/v1/devices/dv/unshare", {"person": "ann"}, ("unshare", "dv_box", "ann")),
        ("/v1/devices/dv/rename", {"name": "lap"}, ("rename", "dv_box", "lap")),
        ("/v1/work/wk_f/move", {"device": "dv_box"}, ("move", "wk_fix", "dv_box")),
        ("/v1/sources/gh/retry", None, ("retry", "gh")),
    ],
)
async def test_commands_reach_what_performs_them(
    client: Client, path: str, body: object, did: tuple[object, ...]
) -> None:
    status, said = await client.post(path, body)
    assert (status, said["did"]) == (200, did[0])
    assert client.behind.asked == [did]


async def test_pairings_are_read_from_the_commands(client: Client) -> None:
    await client.get("/v1/pairings")
    await client.get("/v1/pairings/BCDFGHJK")
    assert client.behind.asked == [("pairings",), ("pairing", "BCDFGHJK")]


@pytest.mark.parametrize("body", [[], {}, {"text": ""}, {"text": 1}, {"text": "a", "b": "c"}])
async def test_a_command_without_its_fields_does_nothing(client: Client, body: object) -> None:
    status, said = await client.post("/v1/sessions/se_fix/say", body)
    assert (status, said["code"]) == (422, "body.fields")
    assert not client.behind.asked


@pytest.mark.parametrize("body", [b"", b"{", b"\xff"])
async def test_a_command_whose_body_is_no_json_is_400(client: Client, body: bytes) -> None:
    url = f"{client.url}/v1/sessions/se_fix/say"
    async with client.session.post(url, data=body, headers=AUTH) as response:
        assert response.status == 400


@pytest.mark.parametrize(
    ("error", "status"),
    [(RefusedError("not now"), 403), (StaleError(), 409), (KeyError("x"), 418)],
)
async def test_what_a_command_raises_is_told(client: Client, error: Exception, status: int) -> None:
    client.behind.raises = error
    assert (await client.post("/v1/requests/rq_b/approve"))[0] == status


# ------------------------------------------------------------------ who may
@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer wrong", "Basic t-o-k-e-n", "Bearer t-o-k-e-n2", "Bearer t-o-k-e-ñ"],
)
@pytest.mark.parametrize("path", ["/v1/status", "/v1/events", "/v1/nothing", "/v1/devices"])
async def test_without_the_token_nothing_is_told(client: Client, header: str, path: str) -> None:
    status, said = await client.get(path, Authorization=header)
    code = "token.wrong" if header else "sign_in.needed"
    assert (status, said["code"]) == (401, code)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:80", 200),
        ("localhost", 200),
        ("[::1]:9", 200),
        ("HUB.example.org", 200),
        ("hub.example.org.", 200),
        ("evil.example.org", 421),
        ("127.0.0.1.evil.example", 421),
        ("[::1", 421),
    ],
)
async def test_only_a_known_host_name_is_answered(client: Client, host: str, status: int) -> None:
    assert (await client.get("/v1/status", Host=host))[0] == status


async def test_health_and_readiness_need_no_token(client: Client) -> None:
    for path, expected in (("/healthz", 200), ("/readyz", 200)):
        async with client.session.get(client.url + path) as response:
            assert response.status == expected
    client.behind.unready = {"store": "it is read-only"}
    async with client.session.get(f"{client.url}/readyz") as response:
        assert response.status == 503
        assert (await response.json())["unready"] == {"store": "it is read-only"}


async def test_a_closed_store_is_503(client: Client) -> None:
    await client.behind.store.close()
    status, said = await client.get("/v1/inbox")
    assert (status, said["code"]) == (503, "store.unavailable")
