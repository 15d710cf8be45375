from __future__ import annotations

import json
from dataclasses import replace
from typing import Unpack

import pytest

from fixtures.github import SECRET, Changed, issue_comment, one, push, settings, signed, started
from upright.api import ConnectorNotReadyError, InboundRequest, TriggerRejectedError
from upright_github.connector import GitHubConnector


async def refused(request: InboundRequest, **changed: Unpack[Changed]) -> TriggerRejectedError:
    async with started(**changed) as connector:
        with pytest.raises(TriggerRejectedError) as caught:
            await connector.receive(request)
    return caught.value


def with_header(request: InboundRequest, **headers: str) -> InboundRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return replace(request, headers={**request.headers, **named})


def without(request: InboundRequest, name: str) -> InboundRequest:
    return replace(request, headers={k: v for k, v in request.headers.items() if k != name})


@pytest.mark.feature("github.hmac", "common.raw")
async def test_a_signed_json_body_becomes_a_trigger_that_keeps_the_raw_bytes() -> None:
    request = signed("issue_comment", issue_comment())
    async with started() as connector:
        (trigger,) = await connector.receive(request)
    assert (trigger.kind, trigger.raw) == ("comment.created", request.body)
    assert trigger.raw_type == "application/json"


@pytest.mark.feature("github.hmac")
async def test_a_signed_form_becomes_the_same_trigger() -> None:
    async with started() as connector:
        (plain,) = await connector.receive(signed("issue_comment", issue_comment("né 😊 &=%")))
        request = signed("issue_comment", issue_comment("né 😊 &=%"), form=True)
        (form,) = await connector.receive(request)
    assert form.content == plain.content
    assert form.raw_type == "application/x-www-form-urlencoded"


async def test_odd_spacing_and_key_order_verify_because_nothing_is_written_anew() -> None:
    body = json.dumps(issue_comment("é 😊"), ensure_ascii=False, indent=7).encode() + b"  \n"
    assert (await one("issue_comment", body)).content.text == "é 😊"


async def test_the_same_text_in_another_encoding_is_refused() -> None:
    request = signed("issue_comment", issue_comment("é 😊"))
    other = json.dumps(json.loads(request.body)).encode()
    error = await refused(replace(request, body=other))
    assert (error.status, error.code) == (401, "trigger.signature")


@pytest.mark.parametrize("claimed", ["", "sha256=", "sha256=00", "sha256=ü", "sha1=00", "nonsense"])
@pytest.mark.feature("github.hmac")
async def test_a_wrong_signature_is_a_401(claimed: str) -> None:
    request = with_header(signed("push", push()), x_hub_signature_256=claimed)
    assert (await refused(request)).status == 401


@pytest.mark.feature("github.hmac")
async def test_a_missing_signature_is_a_401() -> None:
    error = await refused(without(signed("push", push()), "x-hub-signature-256"))
    assert (error.status, error.reason) == (401, "The signature is missing")


@pytest.mark.parametrize("kind", ["", "text/plain", "multipart/form-data", "application/xml"])
async def test_another_content_type_is_a_415(kind: str) -> None:
    error = await refused(with_header(signed("push", push()), content_type=kind))
    assert (error.status, error.code) == (415, "trigger.content_type")


async def test_a_content_type_may_name_its_charset() -> None:
    request = with_header(
        signed("ping", {"zen": ""}), content_type="Application/JSON; charset=utf-8"
    )
    async with started() as connector:
        assert await connector.receive(request) == ()


@pytest.mark.feature("github.hmac")
async def test_a_body_over_the_cap_is_a_413_and_one_at_the_cap_is_not() -> None:
    request = signed("ping", b'{"zen": "Keep it small"}')
    error = await refused(request, max_body_bytes=len(request.body) - 1)
    assert (error.status, error.code) == (413, "trigger.too_large")
    async with started(max_body_bytes=len(request.body)) as connector:
        assert await connector.receive(request) == ()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'"text"', b"null", b"\xff{}", b"[" * 100_000], ids=repr
)
async def test_what_is_no_json_object_is_a_400(body: bytes) -> None:
    error = await refused(signed("push", body))
    assert (error.status, error.code) == (400, "trigger.malformed")


@pytest.mark.parametrize(
    "body", [b"", b"payload", b"other=1", b"payload=1&payload=2", b"payload=%FF"]
)
async def test_a_form_without_one_readable_payload_is_a_400(body: bytes) -> None:
    request = with_header(signed("push", body), content_type="application/x-www-form-urlencoded")
    assert (await refused(request)).status == 400


@pytest.mark.parametrize("name", ["x-github-event", "x-github-delivery"])
async def test_a_missing_header_is_a_400(name: str) -> None:
    assert (await refused(without(signed("push", push()), name))).status == 400


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("comment", None, "comment"),
        ("comment", [], "comment"),
        ("comment", {"id": "7"}, "comment.id"),
        ("comment", {"id": True}, "comment.id"),
        ("issue", {"number": 7}, "issue"),
        ("repository", {"full_name": "a/b"}, "repository.html_url"),
        ("sender", {"login": 7}, "sender.login"),
    ],
)
async def test_a_signed_payload_of_another_shape_is_a_400_that_names_the_place(
    key: str, value: object, place: str
) -> None:
    error = await refused(signed("issue_comment", issue_comment() | {key: value}))
    assert (error.status, error.code) == (400, "trigger.malformed")
    assert f" {place}" in error.reason


@pytest.mark.parametrize("event", ["ping", "star", "an_event_of_tomorrow"])
async def test_events_that_we_do_not_know_are_accepted_and_make_no_trigger(event: str) -> None:
    async with started() as connector:
        assert await connector.receive(signed(event, {"action": "created"})) == ()


async def test_repositories_that_are_not_listed_make_no_trigger() -> None:
    request = signed("push", push())
    async with started(repositories=("Acme/Other",)) as connector:
        assert await connector.receive(request) == ()
    async with started(repositories=("ACME/App",)) as connector:
        assert len(await connector.receive(request)) == 1


@pytest.mark.feature("github.dedupe")
async def test_one_delivery_twice_has_the_same_keys() -> None:
    async with started() as connector:
        first, second = [await connector.receive(signed("push", push())) for _ in range(2)]
    assert first[0].dedupe == second[0].dedupe
    assert first[0].dedupe[0] == "delivery:guid-1"


@pytest.mark.feature("github.dedupe")
async def test_two_hooks_that_tell_the_same_share_the_second_key_only() -> None:
    async with started() as connector:
        (first,) = await connector.receive(signed("push", push(), guid="one"))
        (second,) = await connector.receive(signed("push", push(), guid="two"))
    assert set(first.dedupe) & set(second.dedupe) == {first.dedupe[1]}


async def test_half_a_character_and_nul_become_what_a_database_can_store() -> None:
    body = json.dumps(issue_comment("a\ud83d b\0 😊")).encode()
    text = (await one("issue_comment", body)).content.text
    assert text.encode().decode() == text
    assert "\0" not in text
    assert text.startswith("a\N{REPLACEMENT CHARACTER}")
    assert text.endswith("😊")


async def test_a_source_that_is_not_started_is_not_ready() -> None:
    with pytest.raises(ConnectorNotReadyError):
        await GitHubConnector("github", settings()).receive(signed("push", push()))


async def test_a_refusal_never_tells_the_secret() -> None:
    error = await refused(with_header(signed("push", push()), x_hub_signature_256="sha256=00"))
    assert SECRET not in repr(error) + str(error)
