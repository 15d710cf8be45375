"""Who sent a request: each preset, against what its own service publishes."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from upright.api import InboundRequest, Secret, SecretRef, TriggerRejectedError
from upright_webhook.settings import Scheme, WebhookSettings
from upright_webhook.verify import sign, verify

NOW: Final = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)
AT: Final = int(NOW.timestamp())
BODY: Final = '{"text":  "😊 é", "n":1.0}'.encode()
SIGNING: Final = (Scheme.GITHUB, Scheme.SLACK, Scheme.STRIPE, Scheme.STANDARD)
TIMED: Final = (Scheme.SLACK, Scheme.STRIPE, Scheme.STANDARD)


def settings(scheme: Scheme, **more: object) -> WebhookSettings:
    given: dict[str, Any] = {"scheme": scheme, "secret": SecretRef("s"), **more}
    return WebhookSettings(**given)


def look(
    scheme: Scheme,
    headers: dict[str, str],
    body: bytes = BODY,
    *,
    secret: str = "key",
    now: datetime = NOW,
    **more: object,
) -> None:
    request = InboundRequest(headers=headers, body=body)
    verify(request, settings(scheme, **more), Secret(secret), now)


def refused(scheme: Scheme, headers: dict[str, str], body: bytes = BODY, **more: object) -> str:
    given: dict[str, Any] = more
    with pytest.raises(TriggerRejectedError) as error:
        look(scheme, headers, body, **given)
    assert (error.value.status, error.value.code) == (401, "trigger.signature")
    return error.value.reason


# Published by the services as examples of their schemes.
GITHUB_EXAMPLE: Final = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
STANDARD_SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD_SIGNATURE: Final = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.feature("webhook.signatures")
def test_githubs_own_example_is_verified() -> None:
    headers = {"x-hub-signature-256": f"sha256={GITHUB_EXAMPLE}"}
    look(Scheme.GITHUB, headers, b"Hello, World!", secret="It's a Secret to Everybody")


@pytest.mark.feature("webhook.signatures")
def test_the_example_of_standard_webhooks_is_verified() -> None:
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": STANDARD_SIGNATURE,
    }
    then = datetime.fromtimestamp(1614265330, tz=UTC)
    look(Scheme.STANDARD, headers, b'{"test": 2432232314}', secret=STANDARD_SECRET, now=then)


@pytest.mark.feature("webhook.signatures")
@pytest.mark.parametrize("scheme", SIGNING)
def test_the_raw_bytes_are_signed_and_nothing_else_passes(scheme: Scheme) -> None:
    headers = sign(scheme, "key", BODY, at=AT)
    look(scheme, headers)
    assert refused(scheme, headers, BODY + b" ") == "The signature is wrong"
    assert refused(scheme, headers, secret="other") == "The signature is wrong"
    assert refused(scheme, {}) == "The signature is missing"
    odd = {name: value + "é\udcff" for name, value in headers.items()}
    assert refused(scheme, odd) == "The signature is wrong"


@pytest.mark.feature("webhook.replay")
@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize("skew_s", [-301, 301])
def test_what_is_too_old_or_from_the_future_is_refused(scheme: Scheme, skew_s: int) -> None:
    headers = sign(scheme, "key", BODY, at=AT)
    assert "too old" in refused(scheme, headers, now=NOW + timedelta(seconds=skew_s))
    look(scheme, headers, now=NOW + timedelta(seconds=skew_s * 299 // 301))


@pytest.mark.parametrize("scheme", TIMED)
def test_the_time_is_covered_by_the_signature(scheme: Scheme) -> None:
    old = sign(scheme, "key", BODY, at=AT - 1_000)
    moved = {name: value.replace(str(AT - 1_000), str(AT)) for name, value in old.items()}
    assert refused(scheme, moved) == "The signature is wrong"


def test_while_a_key_is_changed_one_good_signature_of_several_is_enough() -> None:
    stripe = sign(Scheme.STRIPE, "key", BODY, at=AT)["stripe-signature"]
    look(Scheme.STRIPE, {"stripe-signature": f"{stripe},v1={'0' * 64},v0=x"})
    standard = sign(Scheme.STANDARD, "key", BODY, at=AT)
    standard["webhook-signature"] = f"v1a,zzz v1,AAAA {standard['webhook-signature']}"
    look(Scheme.STANDARD, standard)
    many = " ".join(["v1,AAAA"] * 50 + [standard["webhook-signature"]])
    assert "wrong" in refused(Scheme.STANDARD, {**standard, "webhook-signature": many})


def test_a_time_that_is_none_is_refused_though_it_is_signed() -> None:
    headers = sign(Scheme.SLACK, "key", BODY, at=AT)
    headers["x-slack-request-timestamp"] = "soon"
    assert refused(Scheme.SLACK, headers) == "The signature is wrong"


@pytest.mark.feature("webhook.signatures")
def test_bearer_basic_and_a_proxys_header() -> None:
    look(Scheme.BEARER, {"authorization": "bearer key"})
    assert "wrong" in refused(Scheme.BEARER, {"authorization": "Bearer kez"})
    assert "another sort" in refused(Scheme.BEARER, {"authorization": "Basic key"})
    assert "another sort" in refused(Scheme.BEARER, {})
    basic = base64.b64encode(b"hub:key").decode()
    look(Scheme.BASIC, {"authorization": f"Basic {basic}"}, user="hub")
    assert "wrong" in refused(Scheme.BASIC, {"authorization": f"Basic {basic}"}, user="eve")
    look(Scheme.HEADER, {"x-client-dn": "key"}, header="X-Client-DN")
    assert "missing" in refused(Scheme.HEADER, {}, header="X-Client-DN")
    assert "wrong" in refused(Scheme.HEADER, {"x-client-dn": "kéy"}, header="X-Client-DN")


@pytest.mark.parametrize(
    ("scheme", "more", "said"),
    [
        (Scheme.HEADER, {}, "header must name"),
        (Scheme.GITHUB, {"header": "x"}, "header must name"),
        (Scheme.BASIC, {}, "user must be given"),
        (Scheme.GITHUB, {"user": "x"}, "user must be given"),
        (Scheme.GITHUB, {"window_s": 0.0}, "window_s"),
        (Scheme.GITHUB, {"max_body_bytes": 0}, "max_body_bytes"),
        (Scheme.GITHUB, {"dedupe": ("{a b}",)}, "is no path"),
        (Scheme.GITHUB, {"dedupe": ("{a",)}, "a brace stands alone"),
    ],
)
def test_settings_that_cannot_work_are_named(
    scheme: Scheme, more: dict[str, object], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        settings(scheme, **more)
