from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from fixtures.ci_hook import posted, settings
from upright.api import TriggerRejectedError
from upright_ci.settings import JobsMapping, Mapped, Provider, Verify

MAPPING: Final = Mapped(
    id="run.id",
    check="job|run.name",
    verdict="run.result",
    repository="repo.full",
    branch="run.refs.0.name",
    sha="run.refs.0.commit",
    number="run.pull",
    url="run.href",
    at="run.ended",
    text="run.output",
    jobs=JobsMapping(at="run.steps", name="title", verdict="state", text="log"),
)


def run(result: object = "BROKEN", **more: object) -> dict[str, Any]:
    about = {
        "id": 7,
        "name": "nightly",
        "result": result,
        "refs": [{"name": "refs/heads/fix", "commit": "a" * 40}],
        "href": "https://ci.example.org/7",
        "ended": "2026-06-01T10:00:00+02:00",
        "steps": [
            {"title": "build", "state": "passed"},
            {"title": "tests", "state": "failed", "log": "ok\nerror: 1 != 2\n"},
        ],
    }
    return {"repo": {"full": "acme/app"}, "run": {**about, **more}}


@pytest.mark.feature("ci.generic")
async def test_a_mapping_makes_a_run_of_any_json() -> None:
    trigger = await posted(run(), provider=Provider.GENERIC, mapping=MAPPING)
    facts = dict(trigger.context.facts)
    assert trigger.kind == "ci.failed"
    assert trigger.occurred_at == datetime(2026, 6, 1, 8, 0, tzinfo=UTC)
    assert (facts["check"], facts["branch"], facts["sha"]) == ("nightly", "fix", "a" * 40)
    assert (facts["failed"], facts["error"]) == ("tests", "error: 1 != 2")
    assert trigger.context.thread == "ci:runs/acme/app:acme/app:fix"


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ("passed", "ci.succeeded"),
        ("Aborted", "ci.cancelled"),
        ("running", "ci.started"),
        (True, "ci.succeeded"),
        (17, "ci.failed"),
        ("a word of tomorrow", "ci.completed"),
    ],
)
async def test_a_table_of_verdicts_goes_before_the_common_words(result: object, kind: str) -> None:
    verdicts = {"true": "succeeded", "17": "ci.failed"}
    made = await posted(run(result), provider=Provider.GENERIC, mapping=MAPPING, verdicts=verdicts)
    assert made.kind == kind


@pytest.mark.parametrize("missing", ["id", "result"])
async def test_a_payload_without_id_or_verdict_is_refused_by_its_place(missing: str) -> None:
    payload = run()
    del payload["run"][missing]
    with pytest.raises(TriggerRejectedError, match=f"run.{missing}"):
        await posted(payload, provider=Provider.GENERIC, mapping=MAPPING)


@pytest.mark.parametrize("body", [b"", b"no", b"[" * 100_000, b"null", b"[]"])
async def test_what_is_no_run_is_refused(body: bytes) -> None:
    with pytest.raises(TriggerRejectedError):
        await posted(body, provider=Provider.GENERIC, mapping=MAPPING)


async def test_one_end_is_told_once_and_another_attempt_is_news() -> None:
    mapping = Mapped(id="i", verdict="v", attempt="n")
    told = [
        (await posted(each, provider=Provider.GENERIC, mapping=mapping)).dedupe
        for each in ({"i": 1, "v": "ok"}, {"i": 1, "v": "ok", "x": 2}, {"i": 1, "v": "ok", "n": 2})
    ]
    assert told[0] == told[1] != told[2]


def test_a_mapping_that_can_never_work_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="id and verdict"):
        settings(provider=Provider.GENERIC)


# ------------------------------------------------------------------ those that we know
@pytest.mark.feature("ci.jenkins")
async def test_jenkins_tells_its_end_once_though_it_sends_it_twice() -> None:
    build = {
        "number": 5,
        "phase": "COMPLETED",
        "status": "FAILURE",
        "full_url": "https://jenkins.example.org/job/app/5/",
        "scm": {"branch": "origin/fix", "commit": "a" * 40},
        "timestamp": 1_780_000_000_000,
    }
    completed = await posted({"name": "app", "build": build}, provider=Provider.JENKINS)
    final = {**build, "phase": "FINALIZED"}
    finalized = await posted({"name": "app", "build": final}, provider=Provider.JENKINS)
    begun = {**build, "phase": "STARTED"}
    del begun["status"]
    started = await posted({"name": "app", "build": begun}, provider=Provider.JENKINS)
    assert (completed.kind, started.kind) == ("ci.failed", "ci.started")
    assert completed.dedupe == finalized.dedupe
    assert dict(completed.context.facts)["branch"] == "fix"


@pytest.mark.feature("ci.buildkite")
async def test_buildkite_tells_its_pipeline_and_pull_request() -> None:
    payload = {
        "event": "build.finished",
        "build": {
            "id": "f00",
            "state": "failed",
            "branch": "fix",
            "commit": "a" * 40,
            "web_url": "https://buildkite.example.org/1",
            "pull_request": {"id": "7"},
            "finished_at": "2026-06-01T10:00:00Z",
        },
        "pipeline": {"slug": "app"},
    }
    trigger = await posted(
        payload,
        {"repository": "acme/app"},
        provider=Provider.BUILDKITE,
        verify=Verify.BEARER,
        code_host="github:github.com",
    )
    assert trigger.kind == "ci.failed"
    assert trigger.context.thread == "github:github.com/acme/app#7"
