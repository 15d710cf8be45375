"""Real payloads of GitLab and reports of tests, from ``../shared/data`` where it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from fixtures.ci_hook import posted
from fixtures.gitlab import hook, started
from upright.api import Channel, TriggerRejectedError
from upright_ci.gitlab.translate import TABLE

DATA: Final = Path(__file__).parents[3] / "shared" / "data"
ABSENT: Final = "corpus: shared/data does not lie beside the checkout"
needs_corpus = pytest.mark.skipif(not DATA.is_dir(), reason=ABSENT)

JUNIT_FLOOR: Final = 0.95
# What is no report of tests, by name and reason.
REJECTED: Final = {
    "testxxe-xxe.xml": "a DTD or an entity",  # hostile on purpose
    "testxxe-oob.xml": "no XML that can be read",  # the other half of it: a DTD's fragment
}
# Failures counted by hand.
FAILED: Final = {
    "python-xunit-pytest.xml": 2,
    "python-xunit-unittest.xml": 2,
    "swift-xunit.xml": 1,
    "tester-v1.7-report.xml": 1,
    "pulsar-test-report.xml": 1,
    "junit4-complete.xml": 2,
    "phpcheckstyle-phpunit.xml": 2,
    "junit-report-20090516.xml": 3,
    "junit-report-6700.xml": 1,
    "junitresult.xml": 1,
    "empty_failures.xml": 1,
    "test-io.olamy.flakytest.xml": 0,
    "pytest_error.xml": 1,
    "pytest_success.xml": 0,
}


def gitlab() -> list[Path]:
    folders = ("webhooks/go-gitlab", "webhooks/go-playground/gitlab")
    found = [path for folder in folders for path in sorted((DATA / folder).glob("*.json"))]
    return found or [DATA]  # one that is skipped by name


def reports() -> list[Path]:
    return sorted((DATA / "junit").rglob("*.xml")) or [DATA]


def name(path: Path) -> str:
    return path.relative_to(DATA).as_posix()


def read(path: Path) -> bytes:
    return path.read_bytes()


def loaded(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(read(path))
    return value


@needs_corpus
@pytest.mark.parametrize("path", gitlab(), ids=name)
async def test_every_webhook_is_understood_or_taken_without_a_trigger(path: Path) -> None:
    kind = loaded(path).get("object_kind")
    async with started() as connector:
        triggers = await connector.receive(hook(read(path)))
        assert len(triggers) == (kind in TABLE), connector.ignored
        assert "unreadable" not in connector.ignored
    for trigger in triggers:
        assert trigger.channel is Channel.CI
        assert trigger.kind.startswith("ci.") is (kind in {"pipeline", "build"})
        assert trigger.context.thread.startswith("gitlab:")
        assert trigger.context.code is not None
        assert "/" in trigger.context.code.repository
        assert trigger.occurred_at is None or trigger.occurred_at.tzinfo


@needs_corpus
def test_pipelines_jobs_requests_and_notes_are_all_among_the_samples() -> None:
    assert {loaded(path).get("object_kind") for path in gitlab()} >= set(TABLE)


@needs_corpus
@pytest.mark.parametrize("path", reports(), ids=name)
async def test_every_report_makes_one_trigger_or_is_refused_by_its_reason(path: Path) -> None:
    given = {"repository": "acme/app", "branch": "fix"}
    if reason := REJECTED.get(path.name):
        with pytest.raises(TriggerRejectedError, match=reason):
            await posted(read(path), given)
        return
    trigger = await posted(read(path), given)
    facts = dict(trigger.context.facts)
    failed = int(facts["failed_tests"])
    assert trigger.kind == ("ci.failed" if failed else trigger.kind)
    assert trigger.kind in {"ci.failed", "ci.succeeded", "ci.neutral"}
    assert failed == FAILED.get(path.name, failed)
    assert bool(facts.get("failed")) is bool(failed)


@needs_corpus
def test_what_is_refused_is_less_than_one_in_twenty() -> None:
    found = reports()
    refused = [path for path in found if path.name in REJECTED]
    assert len(refused) == len(REJECTED)
    assert 1 - len(refused) / len(found) >= JUNIT_FLOOR


@needs_corpus
async def test_flaky_tests_of_a_real_report_are_named_and_do_not_fail_it() -> None:
    (path,) = (DATA / "junit").rglob("test-io.olamy.flakytest.xml")
    trigger = await posted(read(path))
    assert trigger.kind == "ci.succeeded"
    assert dict(trigger.context.facts)["flaky"]
