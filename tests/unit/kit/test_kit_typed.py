from __future__ import annotations

import pytest

from upright.kit.typed import without_mention

NAMES = ("helper", "@helper", "@helper:example.org", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("deny rq_1", "deny rq_1"),
        (" helper: deny rq_1 ", "deny rq_1"),
        ("Helper, deny rq_1", "deny rq_1"),
        ("@helper deny rq_1", "deny rq_1"),
        ("@helper:example.org: deny rq_1", "deny rq_1"),
        ("helpers: deny rq_1", "helpers: deny rq_1"),
        ("helper", "helper"),
        ("deny rq_1 @helper", "deny rq_1 @helper"),
        ("@ann helper: deny rq_1", "@ann helper: deny rq_1"),
    ],
)
def test_one_mention_of_us_at_the_start_is_left_out(text: str, said: str) -> None:
    assert without_mention(text, NAMES) == said
