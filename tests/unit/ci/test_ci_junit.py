from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pytest

from fixtures.ci_hook import posted
from upright.api import TriggerRejectedError
from upright_ci import junit

RED: Final = b"""<testsuites><testsuite name="unit">
  <testcase classname="tests.clock" name="test_gears">
    <failure type="AssertionError" message="expected 01:30, got 02:30">a trace
E   AssertionError: expected 01:30, got 02:30</failure>
  </testcase>
  <testcase classname="tests.clock" name="test_hands"/>
  <testcase classname="tests.clock" name="test_dial"><skipped/></testcase>
</testsuite></testsuites>"""
GREEN: Final = b'<testsuite name="unit"><testcase classname="a" name="b"/></testsuite>'
RUN: Final = {
    "repository": "acme/app",
    "branch": "fix",
    "sha": "a" * 40,
    "url": "https://ci.example.org/1",
}


@pytest.mark.feature("ci.junit")
async def test_a_report_is_one_trigger_with_what_failed_and_why() -> None:
    trigger = await posted(RED, RUN)
    facts = dict(trigger.context.facts)
    assert trigger.kind == "ci.failed"
    assert trigger.content.title == "unit: failure"
    assert "3 tests, 1 passed, 1 failed, 1 skipped" in trigger.content.text
    assert facts["failed"] == "tests.clock.test_gears"
    assert facts["error"].splitlines() == [
        "AssertionError: expected 01:30, got 02:30",
        "E   AssertionError: expected 01:30, got 02:30",
    ]
    assert (facts["repository"], facts["branch"], facts["url"]) == (
        "acme/app",
        "fix",
        "https://ci.example.org/1",
    )


async def test_a_report_without_a_failure_succeeds_and_one_without_a_test_says_nothing() -> None:
    assert (await posted(GREEN, RUN)).kind == "ci.succeeded"
    assert (await posted(b"<testsuites/>", RUN)).kind == "ci.neutral"


async def test_an_upload_joins_the_pull_request_that_the_code_host_told_of() -> None:
    trigger = await posted(GREEN, {**RUN, "number": "7"}, code_host="github:github.com")
    base = "github:github.com/acme/app"
    assert trigger.context.thread == f"{base}#7"
    assert trigger.context.joins == (f"{base}@{'a' * 40}", f"{base}:acme/app:fix")


async def test_headers_say_what_the_query_does_not() -> None:
    trigger = await posted(GREEN, {"branch": "fix"}, check="unit tests", repository="acme/app")
    facts = dict(trigger.context.facts)
    assert (facts["check"], facts["repository"]) == ("unit tests", "acme/app")


async def test_a_report_happened_when_its_sender_says() -> None:
    assert (await posted(GREEN, RUN)).occurred_at is None
    told = await posted(GREEN, {**RUN, "at": "2026-06-01T12:00:00+02:00"})
    assert told.occurred_at == datetime(2026, 6, 1, 10, tzinfo=UTC)
    with pytest.raises(TriggerRejectedError, match="at must be"):
        await posted(GREEN, {**RUN, "at": "2026-06-01T12:00:00"})


async def test_the_same_upload_is_told_once_and_another_attempt_is_news() -> None:
    first, again = await posted(RED, RUN), await posted(RED, RUN)
    other = await posted(RED, {**RUN, "attempt": "2"})
    elsewhere = await posted(RED, {**RUN, "sha": "b" * 40})
    assert first.dedupe == again.dedupe
    assert len({first.dedupe, other.dedupe, elsewhere.dedupe}) == 3


async def test_a_head_that_nobody_names_is_a_fork() -> None:
    code = (await posted(GREEN, {"repository": "acme/app", "sha": "a" * 40})).context.code
    assert code is not None
    assert code.fork


# ------------------------------------------------------------------ flakes
@pytest.mark.feature("ci.flakes")
def test_a_test_that_passes_on_retry_is_flaky_and_not_failed() -> None:
    report = junit.read(
        b'<testsuite name="s">'
        b'<testcase classname="a" name="b"><failure message="once"/></testcase>'
        b'<testcase classname="a" name="b"/>'
        b'<testcase classname="a" name="c"><flakyFailure message="now and then"/></testcase>'
        b"</testsuite>"
    )
    assert report.failures == ()
    assert report.flaky == ("a.b", "a.c")


@pytest.mark.feature("ci.flakes")
def test_a_test_that_fails_on_retry_has_failed_once() -> None:
    report = junit.read(
        b'<testsuite name="s">'
        b'<testcase classname="a" name="b"><failure message="one"/></testcase>'
        b'<testcase classname="a" name="b"/>'
        b'<testcase classname="a" name="b"><failure message="three"/></testcase>'
        b'<testcase classname="a" name="c"><rerunFailure/><failure message="x"/></testcase>'
        b"</testsuite>"
    )
    assert [one.name for one in report.failures] == ["a.b", "a.c"]
    assert report.flaky == ()


# ------------------------------------------------------------------ attacks
BOMB: Final = (
    b'<!DOCTYPE x [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY %c "&%c;&%c;">' % (c + 1, c, c) for c in range(97, 117))
    + b"]><testsuite><testcase>&u;</testcase></testsuite>"
)
XXE: Final = (
    b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    b'<testsuite><testcase name="&f;"/></testsuite>'
)
DTD: Final = b'<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd"><testsuite/>'


@pytest.mark.feature("ci.junit")
@pytest.mark.parametrize("body", [BOMB, XXE, DTD], ids=["bomb", "file", "dtd"])
async def test_a_hostile_report_is_refused(body: bytes) -> None:
    with pytest.raises(TriggerRejectedError, match="DTD or an entity") as refused:
        await posted(body, RUN)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"<testsuite>",
        b"<html/>",
        b"\xff\xfe",
        b'<?xml version="1.0" encoding="no"?><a/>',
    ],
)
async def test_what_is_no_report_is_refused(body: bytes) -> None:
    with pytest.raises(TriggerRejectedError) as refused:
        await posted(body, RUN)
    assert refused.value.status == 400


async def test_endless_nesting_is_refused() -> None:
    deep = b"<testsuite>" * 100_000
    with pytest.raises(TriggerRejectedError, match="nested too deep"):
        await posted(deep, RUN)


@pytest.mark.parametrize("word", ["number", "attempt"])
@pytest.mark.parametrize("value", ["0", "-1", "x", "٣", "9" * 30])
async def test_a_number_that_is_none_is_refused(word: str, value: str) -> None:
    with pytest.raises(TriggerRejectedError, match=word):
        await posted(GREEN, {**RUN, word: value})


@pytest.mark.feature("ci.junit")
def test_of_a_huge_report_only_what_failed_is_kept() -> None:
    case = b'<testcase classname="a" name="n%d"><failure>error %s</failure></testcase>'
    body = b"".join(case % (number, b"x" * 500) for number in range(5_000))
    report = junit.read(b"<testsuite>" + body + b"</testsuite>")
    assert (report.tests, len(report.failures)) == (5_000, 5_000)
    assert sum(len(one.lines) for one in report.failures) == junit.MAX_KEPT


async def test_a_secret_in_a_message_is_masked_everywhere_but_in_the_payload() -> None:
    token = "ghp_" + "a1" * 18
    body = RED.replace(b"a trace", f"error: token {token}".encode())
    trigger = await posted(body, RUN)
    assert token not in repr(trigger.content) + repr(trigger.context)
    assert "[masked]" in dict(trigger.context.facts)["error"]
