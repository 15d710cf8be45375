"""What an endpoint's refusal means."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from upright.engine.ports import (
    ModelAuthError,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
)
from upright.llm.failures import Refusal, refusal_error, retry_after_s

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (401, "", ModelAuthError),
        (402, "", ModelAuthError),
        (403, "", ModelAuthError),
        (429, "insufficient_quota", ModelAuthError),
        (400, "billing_hard_limit_reached", ModelAuthError),
        (429, "rate_limit_exceeded", ModelUnavailableError),
        (408, "", ModelUnavailableError),
        (409, "", ModelUnavailableError),
        (500, "", ModelUnavailableError),
        (529, "", ModelUnavailableError),
        (400, "", ModelRequestError),
        (404, "", ModelRequestError),
        (413, "", ModelRequestError),
        (422, "", ModelRequestError),
        (None, "server_error", ModelUnavailableError),
        (None, "context_length_exceeded", ModelRequestError),
        (None, "insufficient_quota", ModelAuthError),
        (None, "", ModelUnavailableError),
    ],
)
def test_each_refusal_is_one_of_three_kinds(
    status: int | None, code: str, expected: type[ModelError]
) -> None:
    error = refusal_error(Refusal(status=status, codes=frozenset({code}), reason="why"))
    assert type(error) is expected
    assert "why" in str(error)


def test_the_time_to_wait_goes_with_the_error() -> None:
    refusal = Refusal(status=429, codes=frozenset(), reason="", retry_after_s=5.0)
    error = refusal_error(refusal)
    assert isinstance(error, ModelUnavailableError)
    assert error.retry_after_s == 5.0


def test_an_endless_reason_is_cut() -> None:
    refusal = Refusal(status=500, codes=frozenset(), reason="<html>" * 1_000)
    assert len(str(refusal_error(refusal))) < 400


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Tue, 01 Jan 2030 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 31 Dec 2029 23:00:00 GMT"}, 0.0),
        ({"retry-after": "Tue, 01 Jan 2030 00:00:30 -0000"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_retry_after_is_read_in_each_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == seconds
