from __future__ import annotations

import hashlib
import hmac
from typing import Final

import pytest

from fixtures.ci_hook import SECRET, Changed, received
from upright.api import InboundRequest, TriggerRejectedError
from upright.testing.context import START
from upright_ci.settings import Provider, Verify

BODY: Final = b'<testsuite name="s"><testcase name="t"/></testsuite>'
BUILD: Final = b'{"build": {"id": "1", "state": "passed"}}'


def mac(body: bytes) -> str:
    return hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()


def stamped(at: float) -> str:
    stamp = str(int(at))
    return f"timestamp={stamp},signature={mac(stamp.encode() + b'.' + BUILD)}"


HMAC: Final[Changed] = {"verify": Verify.HMAC, "header": "X-Signature"}
HEADER: Final[Changed] = {"verify": Verify.HEADER, "header": "X-Token"}
KITE: Final[Changed] = {"provider": Provider.BUILDKITE}
NOW: Final = START.timestamp()


@pytest.mark.feature("ci.buildkite")
@pytest.mark.parametrize(
    ("headers", "changed"),
    [
        ({"authorization": f"Bearer {SECRET}"}, {}),
        ({"x-signature": mac(BODY)}, HMAC),
        ({"x-signature": f"sha256={mac(BODY)}"}, HMAC),
        ({"x-token": SECRET}, HEADER),
        ({"x-buildkite-token": SECRET}, KITE),
        ({"x-buildkite-signature": stamped(NOW)}, KITE),
    ],
)
async def test_who_knows_the_secret_is_heard(headers: dict[str, str], changed: Changed) -> None:
    body = BUILD if changed == KITE else BODY
    await received(InboundRequest(headers=headers, body=body), **changed)


@pytest.mark.parametrize(
    ("headers", "changed"),
    [
        ({}, {}),
        ({"authorization": SECRET}, {}),
        ({"authorization": f"Basic {SECRET}"}, {}),
        ({"authorization": "Bearer ä"}, {}),
        ({"x-signature": mac(BODY + b" ")}, HMAC),
        ({"x-signature": ""}, HMAC),
        ({"x-token": SECRET + "x"}, HEADER),
        ({"x-buildkite-signature": stamped(NOW - 3600), "x-buildkite-token": SECRET}, KITE),
        ({"x-buildkite-signature": "timestamp=,signature="}, KITE),
        ({"x-buildkite-signature": "rubbish"}, KITE),
    ],
)
async def test_who_does_not_is_refused(headers: dict[str, str], changed: Changed) -> None:
    body = BUILD if changed == KITE else BODY
    with pytest.raises(TriggerRejectedError) as refused:
        await received(InboundRequest(headers=headers, body=body), **changed)
    assert (refused.value.status, refused.value.code) == (401, "trigger.signature")
    assert SECRET not in str(refused.value)


async def test_a_body_over_the_cap_is_refused_before_all_else() -> None:
    with pytest.raises(TriggerRejectedError) as refused:
        await received(InboundRequest(headers={}, body=BODY), max_body_bytes=10)
    assert refused.value.status == 413
