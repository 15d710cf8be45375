"""A request becomes a trigger as the settings say; the sender hears what it needs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from fixtures.connector import MemoryContext
from upright.api import (
    ActorKind,
    Answered,
    Channel,
    ConnectorNotReadyError,
    InboundRequest,
    SecretRef,
    Trigger,
    TriggerRejectedError,
)
from upright_webhook.connector import WebhookConnector
from upright_webhook.settings import Answer, Mapping, Scheme, WebhookSettings

DEPLOY: Final = {
    "event": "Deploy Finished",
    "id": 77,
    "app": {"name": "clock", "repo": "acme/clock"},
    "by": [{"login": "nadia"}],
    "ok": False,
    "at": 1_780_308_000,
    "url": "https://deploys.example.org/77",
    "log": None,
}


async def receive(
    body: object,
    *,
    headers: dict[str, str] | None = None,
    mapped: Mapping | None = None,
    **more: object,
) -> tuple[Trigger, ...] | Answered:
    given: dict[str, Any] = {"scheme": Scheme.BEARER, "secret": SecretRef("s"), **more}
    if mapped is not None:
        given["map"] = mapped
    connector = WebhookConnector("deploys", WebhookSettings(**given))
    context = MemoryContext(source="deploys")
    context.secrets["s"] = "key"
    await connector.start(context)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = {"authorization": "Bearer key", "content-type": "application/json", **(headers or {})}
    found = await connector.receive(InboundRequest(headers=told, body=raw))
    assert connector.health().heard_at == context.now()
    return found if isinstance(found, Answered) else tuple(found)


async def one(body: object, **more: object) -> Trigger:
    given: dict[str, Any] = more
    (trigger,) = await receive(body, **given)
    return trigger


@pytest.mark.feature("webhook.mapping")
async def test_fields_are_mapped_by_paths() -> None:
    mapped = Mapping(
        kind="{event}",
        title="Deploy {id} of {app.name}: {{{ok}}}",
        text="{log}{by.0.login}{by.9.login}{app.name.deeper}{.}",
        thread="{app.repo}",
        actor="{by.0.login}",
        actor_name="{header:X-Sender}",
        occurred_at="{at}",
        link="{url}",
        repository="{app.repo}",
        sha="c0ffee",
        facts=(("app", "{app.name}"), ("nothing", "{nowhere}")),
    )
    trigger = await one(DEPLOY, mapped=mapped, headers={"x-sender": "Deployer"})
    assert (trigger.kind, trigger.channel) == ("webhook.deploy-finished", Channel.WEBHOOK)
    assert trigger.content.title == "Deploy 77 of clock: {false}"
    assert trigger.content.text.startswith("nadia{")
    assert '"repo": "acme/clock"' in trigger.content.text
    assert trigger.context.thread == "webhook:acme/clock"
    assert (trigger.actor.id, trigger.actor.name) == ("nadia", "Deployer")
    assert trigger.actor.kind is ActorKind.STRANGER
    assert trigger.occurred_at == datetime(2026, 6, 1, 10, 0, tzinfo=UTC)
    assert trigger.context.links == ("https://deploys.example.org/77",)
    assert trigger.context.code is not None
    assert trigger.context.code.repository == "acme/clock"
    assert dict(trigger.context.facts)["app"] == "clock"
    assert "nothing" not in dict(trigger.context.facts)
    assert json.loads(trigger.raw) == DEPLOY


async def test_without_a_mapping_everything_is_kept_and_nothing_is_made_up() -> None:
    trigger = await one(DEPLOY, bot=True)
    assert (trigger.kind, trigger.content.title) == ("webhook.received", "Webhook of deploys")
    assert json.loads(trigger.content.text) == DEPLOY
    assert trigger.context.thread == "webhook:deploys"
    assert trigger.actor.kind is ActorKind.BOT
    assert trigger.context.code is None
    assert not trigger.content.urgent


@pytest.mark.parametrize(
    "kind", ["operator.message", "approval.approved", "../job.finished", "", "é"]
)
async def test_no_kind_can_be_taken_for_the_hubs_own(kind: str) -> None:
    trigger = await one({"kind": kind}, mapped=Mapping(kind="{kind}"))
    assert trigger.kind.startswith("webhook.")
    assert trigger.kind.isascii()


@pytest.mark.parametrize(
    ("at", "found"),
    [
        ("2026-06-01T12:00:00+02:00", "2026-06-01T10:00:00+00:00"),
        ("2026-06-01 10:00", "2026-06-01T10:00:00+00:00"),
        (1_780_308_000_000, "2026-06-01T10:00:00+00:00"),
        ("yesterday", None),
        ("9" * 40, None),
        ([], None),
    ],
)
async def test_times_are_read_in_the_usual_forms(at: object, found: str | None) -> None:
    trigger = await one({"at": at}, mapped=Mapping(occurred_at="{at}"))
    said = trigger.occurred_at
    assert (said.astimezone(UTC).isoformat() if said else None) == found


async def test_a_second_copy_is_known_by_a_template_a_header_or_the_body() -> None:
    by_id = [await one({"id": 7, "try": n}, dedupe=("{nowhere}", "{id}")) for n in (1, 2)]
    assert by_id[0].dedupe == by_id[1].dedupe == ("id:7",)
    header = await one({"id": 7}, headers={"x-request-id": "r1"})
    assert header.dedupe == ("x-request-id:r1",)
    same, other = await one({"id": 7}), await one({"id": 8})
    assert same.dedupe == (await one({"id": 7})).dedupe != other.dedupe
    long = await one({"id": "x" * 5_000}, dedupe=("{id}",))
    assert len(long.dedupe[0]) < 100


async def test_a_form_with_its_json_in_payload_is_mapped_too() -> None:
    form = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    trigger = await one(
        b"payload=%7B%22a%22%3A1%7D&b=2", headers=form, mapped=Mapping(title="{a}-{b}")
    )
    assert trigger.content.title == "1-2"


async def test_plain_text_is_kept_as_it_is() -> None:
    trigger = await one("Grüße".encode(), headers={"content-type": "text/plain"})
    assert trigger.content.text == "Grüße"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", "application/json"),
        (b"", "application/json"),
        (b"[" * 100_000, "application/vnd.x+json"),
        (b'{"a": "\\ud800"}', "application/json"),
        (b"\xff", "application/json"),
        (b"a=%ff", "application/x-www-form-urlencoded"),
        (b"payload=%7B", "application/x-www-form-urlencoded"),
    ],
)
@pytest.mark.feature("webhook.dead_letters")
async def test_a_body_that_is_not_what_it_says_is_refused(body: bytes, kind: str) -> None:
    with pytest.raises(TriggerRejectedError) as error:
        await receive(body, headers={"content-type": kind})
    assert error.value.status == 400


@pytest.mark.feature("webhook.cap")
async def test_each_source_has_its_cap() -> None:
    with pytest.raises(TriggerRejectedError) as error:
        await receive(b'"' + b"x" * 100 + b'"', max_body_bytes=64)
    assert error.value.status == 413


async def test_what_the_settings_leave_out_makes_no_trigger() -> None:
    mapped = Mapping(skip_unless="{ok}")
    assert await receive({"ok": False}, mapped=mapped) == ()
    assert len(await receive({"ok": True}, mapped=mapped)) == 1


@pytest.mark.feature("webhook.answers")
async def test_the_sender_hears_a_text_or_its_challenge() -> None:
    told = await receive(DEPLOY, answer=Answer.TEXT, answer_text="thanks")
    assert isinstance(told, Answered)
    assert (told.text, len(told)) == ("thanks", 1)
    challenged = await receive({"challenge": "c-1"}, answer=Answer.CHALLENGE)
    assert isinstance(challenged, Answered)
    assert (challenged.text, len(challenged)) == ("c-1", 0)
    assert len(await receive(DEPLOY, answer=Answer.CHALLENGE)) == 1


async def test_a_challenge_is_verified_like_everything_else() -> None:
    with pytest.raises(TriggerRejectedError):
        await receive({"challenge": "c"}, headers={"authorization": ""}, answer=Answer.CHALLENGE)


async def test_before_its_start_it_receives_nothing() -> None:
    settings = WebhookSettings(scheme=Scheme.BEARER, secret=SecretRef("s"))
    with pytest.raises(ConnectorNotReadyError):
        await WebhookConnector("x", settings).receive(InboundRequest(headers={}, body=b""))


@pytest.mark.parametrize("template", ["{a b}", "{", "}", "{}", "{x:y}", "{header:}", "{a..b}"])
def test_a_template_that_cannot_work_is_named_by_its_field(template: str) -> None:
    with pytest.raises(ValueError, match="title: "):
        Mapping(title=template)
