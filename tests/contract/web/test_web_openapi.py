"""The API's document: it names every path, it is the one that is published, and answers keep it."""

from __future__ import annotations

import json

import jsonschema
import pytest

from docsgen import api
from fixtures.documented import Documented
from fixtures.web_hub import AUTH, Client
from upright.web.app import routes
from upright.web.needs import NEEDS
from upright.web.openapi import bare, document

READS = [
    "/v1/events/last",
    "/v1/events/list",
    "/v1/inbox",
    "/v1/inbox?disposition=odd",
    "/v1/inbox?limit=x",
    "/v1/triggers/tr_red",
    "/v1/triggers/tr_star",
    "/v1/triggers/tr_red/neighbours",
    "/v1/triggers/tr_",
    "/v1/why/tr_red",
    "/v1/why/wk_fix",
    "/v1/why/se_fix",
    "/v1/show/tr_red",
    "/v1/show/nothing",
    "/v1/work",
    "/v1/work?open=1",
    "/v1/work/wk_fix",
    "/v1/work/tr_red",
    "/v1/sessions",
    "/v1/sessions/se_fix",
    "/v1/sessions/se_fix/entries",
    "/v1/requests",
    "/v1/requests?all=1",
    "/v1/requests/rq_done",
    "/v1/devices",
    "/v1/devices/dv_box",
    "/v1/sources",
    "/v1/costs",
    "/v1/stalled",
    "/v1/waits?all=1",
    "/v1/outbox",
    "/v1/outbox/ob_fixed",
    "/v1/outbox?state=odd",
    "/v1/stats",
    "/v1/rules",
    "/v1/rules?version=99",
    "/v1/rules/history",
    "/v1/people",
    "/v1/follows",
    "/v1/show/a%00b",
    "/healthz",
    "/readyz",
]


def test_no_path_of_the_api_goes_without_a_description() -> None:
    assert bare(routes()) == []


def test_the_document_says_of_each_path_which_role_it_needs() -> None:
    for path, operations in document(routes())["paths"].items():
        for method, operation in operations.items():
            role = NEEDS[f"{method.upper()} {path}"].role
            assert operation.get("x-role") == (None if role is None else role.word)
            assert bool(operation["security"]) is (role is not None)


def test_the_document_that_is_published_is_the_one_of_these_routes() -> None:
    assert api.FILE.read_text(encoding="utf-8") == api.text(), "run `make format`"


def test_every_schema_of_the_document_is_sound_and_every_reference_leads_somewhere() -> None:
    said = document(routes())
    for schema in said["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    text = json.dumps(said)
    names = {part.partition('"')[0] for part in text.split('"#/components/')[1:]}
    known = {f"{kind}/{name}" for kind, named in said["components"].items() for name in named}
    assert names <= known
    ids = [one["operationId"] for each in said["paths"].values() for one in each.values()]
    assert len(ids) == len(set(ids))


async def test_a_hub_serves_its_document(client: Client) -> None:
    assert await client.read("/v1/openapi.json") == json.loads(api.text())


@pytest.mark.parametrize("path", READS)
async def test_what_is_read_has_the_form_that_the_document_gives(client: Client, path: str) -> None:
    status, body = await client.get(path)
    documented = Documented()
    assert documented.operation("GET", path) is not None
    documented.check("GET", path, status, body)
    assert status < 500


async def test_what_http_itself_refuses_is_a_problem_too(client: Client) -> None:
    asked = {
        ("GET", "/v1/nowhere"): 404,
        ("DELETE", "/v1/inbox"): 405,
        ("POST", "/healthz"): 405,
        ("GET", "/nowhere"): 404,
    }
    for (method, path), wanted in asked.items():
        async with client.session.request(method, client.url + path, headers=AUTH) as answered:
            assert answered.status == wanted
            assert answered.content_type == "application/problem+json"
            Documented().check_problem(await answered.json(content_type=None))


async def test_too_large_a_body_and_an_odd_expectation_are_problems(client: Client) -> None:
    path = f"{client.url}/v1/sessions/se_fix/say"
    async with client.session.post(path, data=b"x" * 300_000, headers=AUTH) as answered:
        assert (answered.status, answered.content_type) == (413, "application/problem+json")
    headers = {**AUTH, "Expect": "miracles"}
    async with client.session.post(path, data=b"{}", headers=headers) as answered:
        assert (answered.status, answered.content_type) == (417, "application/problem+json")


async def test_what_nobody_foresaw_is_a_problem_that_shows_nothing_inner(client: Client) -> None:
    client.behind.raises = ZeroDivisionError("secret")
    status, said = await client.post("/v1/requests/rq_branch/approve")
    assert (status, said["code"]) == (500, "internal")
    assert "secret" not in json.dumps(said)


async def test_a_zero_byte_is_refused_before_a_database_sees_it(client: Client) -> None:
    for path in ("/v1/inbox?text=%00", "/v1/show/%00"):
        status, said = await client.get(path)
        assert (status, said["code"]) == (400, "target.zero_byte")
    status, said = await client.post("/v1/sessions/se_fix/say", {"text": "a\0b"})
    assert (status, said["code"]) == (422, "body.fields")
