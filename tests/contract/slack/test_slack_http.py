"""Events by HTTP: signatures, their window, challenges, retries, and catching up by the history."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from fixtures.slack import ANN, CAL, DEV, ME, callback, memory, request, sandbox, started, texts
from upright.api import Answered, TriggerRejectedError

MESSAGES = 210


@pytest.mark.feature("slack.transport")
@pytest.mark.clause("B2.4")
async def test_only_what_slack_signed_lately_is_read() -> None:
    context = memory()
    async with sandbox(context) as at, started(at, context, http=True) as connector:
        good = callback(at, at.world.post(DEV, ANN, "Grüße 😊"))
        (trigger,) = await connector.receive(good)
        assert trigger.content.text == "Grüße 😊"
        assert trigger.raw == good.body
        forged = replace(good, body=good.body + b" ")
        unsigned = replace(good, headers={"content-type": "application/json"})
        for bad in (forged, unsigned):
            with pytest.raises(TriggerRejectedError) as refused:
                await connector.receive(bad)
            assert (refused.value.status, refused.value.code) == (401, "trigger.signature")
        for away_s in (301, -602):
            context.pass_time(away_s)
            with pytest.raises(TriggerRejectedError, match="five minutes"):
                await connector.receive(good)


async def test_bodies_that_are_no_event_are_refused_or_tell_nothing() -> None:
    context = memory()
    async with sandbox(context) as at, started(at, context, http=True) as connector:
        for body, status in ((b"[]", 400), (b"{", 400), (b'{"type":"event_callback"}', 400)):
            with pytest.raises(TriggerRejectedError) as refused:
                await connector.receive(request(at.courier.signed(body), body))
            assert refused.value.status == status
        other = b'{"type": "app_rate_limited"}'
        assert await connector.receive(request(at.courier.signed(other), other)) == ()
        form = urlencode({"payload": "{}"}).encode()
        headers = {**at.courier.signed(form), "Content-Type": "application/x-www-form-urlencoded"}
        assert await connector.receive(request(headers, form)) == ()
        text = {**at.courier.signed(form), "Content-Type": "text/plain"}
        with pytest.raises(TriggerRejectedError) as wrong:
            await connector.receive(request(text, form))
        assert wrong.value.status == 415
        huge = replace(callback(at, at.world.post(DEV, ANN, "x")), body=b" " * 2_000_000)
        with pytest.raises(TriggerRejectedError) as large:
            await connector.receive(huge)
        assert large.value.status == 413


async def test_a_challenge_is_sent_back() -> None:
    context = memory()
    async with sandbox(context) as at, started(at, context, http=True) as connector:
        body = json.dumps({"type": "url_verification", "challenge": "abc", "token": ""}).encode()
        said = await connector.receive(request(at.courier.signed(body), body))
        assert isinstance(said, Answered)
        assert (said.text, len(said)) == ("abc", 0)


@pytest.mark.case("AG/10073", "BP/1355")
async def test_a_retry_is_taken_when_the_first_copy_never_came() -> None:
    context = memory()
    async with sandbox(context) as at, started(at, context, http=True) as connector:
        first = callback(at, at.world.post(DEV, ANN, "hello"))
        headers = {
            **first.headers,
            "x-slack-retry-num": "1",
            "x-slack-retry-reason": "http_timeout",
        }
        (retried,) = await connector.receive(replace(first, headers=headers))
        (original,) = await connector.receive(first)
        assert retried.dedupe == original.dedupe
        assert retried.dedupe[0].startswith("event:Ev")


@pytest.mark.feature("slack.dedupe")
async def test_a_mention_comes_by_two_events_that_share_a_key() -> None:
    context = memory()
    async with sandbox(context) as at, started(at, context, http=True) as connector:
        event = at.world.post(DEV, ANN, f"<@{ME}> look")
        (plain,) = await connector.receive(callback(at, event))
        (named,) = await connector.receive(callback(at, {**event, "type": "app_mention"}))
        assert set(plain.dedupe) & set(named.dedupe) == {f"message:{DEV}:{event['ts']}"}
        assert (plain.kind, plain.context.address) == (named.kind, named.context.address)


async def test_a_socket_source_takes_no_webhooks() -> None:
    context = memory()
    async with sandbox(context) as at, started(at, context) as connector:
        with pytest.raises(TriggerRejectedError) as refused:
            await connector.receive(callback(at, at.world.post(DEV, ANN, "x")))
        assert refused.value.status == 404


async def test_the_thread_of_a_reaction_is_that_of_its_message() -> None:
    context = memory()
    async with sandbox(context) as at, started(at, context, http=True) as connector:
        root = str(at.world.post(DEV, ANN, "root")["ts"])
        reply = at.world.post(DEV, CAL, "reply", thread_ts=root)
        (said,) = await connector.receive(callback(at, reply))
        react = at.world.react(DEV, str(reply["ts"]), ANN, "eyes")
        (reacted,) = await connector.receive(callback(at, react))
        assert reacted.context.thread == said.context.thread


@pytest.mark.feature("slack.gap")
@pytest.mark.clause("B2.3")
async def test_what_no_webhook_brought_is_read_by_the_history_in_order() -> None:
    context = memory()
    async with sandbox(context) as at, started(at, context, http=True) as connector:
        old = str(at.world.post(DEV, ANN, "an old thread")["ts"])
        context.pass_time(3_600)
        since = context.now()
        for n in range(MESSAGES):
            context.pass_time(1)
            at.world.post(DEV, ANN, f"message {n}", thread_ts=old if n % 7 == 0 else "")
        until = context.now() + timedelta(seconds=5)
        told = [one async for one in connector.backfill(since.isoformat(), until)]
        assert texts(told) == [f"message {n}" for n in range(MESSAGES)]
        assert [one async for one in connector.backfill(None, until)] == []
        assert connector.capabilities().lists
