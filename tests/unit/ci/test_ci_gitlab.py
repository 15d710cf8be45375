from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from fixtures.gitlab import BOT, hook, one, started
from upright.api import ActorKind, Address, InboundRequest, TriggerRejectedError

BASE: Final = "gitlab:git.example.org/acme/app"
SHA: Final = "a" * 40
ENDED: Final = "2026-06-01 09:04:00 UTC"

Payload = dict[str, Any]


def project() -> Payload:
    return {
        "id": 11,
        "web_url": "https://git.example.org/acme/app",
        "git_http_url": "https://git.example.org/acme/app.git",
        "path_with_namespace": "acme/app",
        "default_branch": "main",
    }


def user(name: str = "ann") -> Payload:
    return {"id": 1, "username": name, "name": name.title()}


def pipeline(status: str = "failed", *, branch: str = "fix", **more: object) -> Payload:
    about = {
        "id": 31,
        "ref": branch,
        "tag": False,
        "sha": SHA,
        "status": status,
        "source": "push",
        "created_at": "2026-06-01 09:00:00 UTC",
        "finished_at": ENDED if status in {"failed", "success", "canceled"} else None,
    }
    job = {"id": 5, "name": "unit", "status": status, "allow_failure": False}
    return {
        "object_kind": "pipeline",
        "object_attributes": about,
        "user": user(),
        "project": project(),
        "commit": {"message": "Change the clock"},
        "builds": [job, {**job, "id": 6, "name": "lint", "allow_failure": True}],
        **more,
    }


def request(*, source: int = 11) -> Payload:
    return {"iid": 7, "source_branch": "fix", "source_project_id": source, "target_project_id": 11}


def job(status: str = "failed", **more: object) -> Payload:
    return {
        "object_kind": "build",
        "ref": "fix",
        "tag": False,
        "sha": SHA,
        "build_id": 5,
        "build_name": "unit",
        "build_stage": "test",
        "build_status": status,
        "build_finished_at": ENDED,
        "build_allow_failure": False,
        "build_failure_reason": "script_failure",
        "retries_count": 1,
        "pipeline_id": 31,
        "user": user(),
        "repository": {"homepage": "https://git.example.org/acme/app"},
        **more,
    }


def asked(action: str = "open", **more: object) -> Payload:
    about = {
        "id": 70,
        **request(),
        "title": "Change the clock",
        "description": "Fixes it",
        "state": "opened",
        "target_branch": "main",
        "source": project(),
        "last_commit": {"id": SHA},
        "url": "https://git.example.org/acme/app/-/merge_requests/7",
        "created_at": "2026-06-01 09:00:00 UTC",
        "updated_at": ENDED,
        "action": action,
    }
    return {
        "object_kind": "merge_request",
        "user": user(),
        "project": project(),
        "object_attributes": {**about, **more},
        "changes": {},
    }


def note(text: str = "Please look", **more: object) -> Payload:
    said = {"id": 501, "note": text, "created_at": ENDED, "updated_at": ENDED, "action": "create"}
    return {
        "object_kind": "note",
        "user": user(),
        "project": project(),
        "object_attributes": {**said, **more},
        "merge_request": {"id": 70, **request(), "title": "Change the clock"},
    }


# ------------------------------------------------------------------ runs
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("created", "ci.queued"),
        ("pending", "ci.queued"),
        ("running", "ci.started"),
        ("success", "ci.succeeded"),
        ("failed", "ci.failed"),
        ("canceled", "ci.cancelled"),
        ("skipped", "ci.skipped"),
        ("a_status_of_tomorrow", "ci.completed"),
    ],
)
async def test_each_status_has_its_kind(status: str, kind: str) -> None:
    assert (await one(pipeline(status))).kind == kind
    assert (await one(job(status))).kind == kind


async def test_a_pipeline_that_waits_for_a_person_asks_and_a_job_does_not() -> None:
    assert (await one(pipeline("manual"))).kind == "ci.action_required"
    assert (await one(job("manual"))).kind == "ci.queued"


async def test_a_pipeline_tells_what_failed_and_not_what_may_fail() -> None:
    trigger = await one(pipeline())
    facts = dict(trigger.context.facts)
    assert trigger.content.title == "pipeline: failed"
    assert facts["failed"] == "unit"
    assert (facts["repository"], facts["branch"], facts["sha"]) == ("acme/app", "fix", SHA)
    assert facts["url"] == "https://git.example.org/acme/app/-/pipelines/31"
    assert (trigger.actor.id, trigger.actor.kind) == ("app:gitlab-ci", ActorKind.BOT)
    assert trigger.occurred_at == datetime(2026, 6, 1, 9, 4, tzinfo=UTC)


async def test_a_job_tells_its_attempt_and_why_it_failed() -> None:
    trigger = await one(job())
    facts = dict(trigger.context.facts)
    assert (facts["check"], facts["attempt"], facts["stage"]) == ("unit", "2", "test")
    assert facts["error"] == "script failure"


async def test_a_job_that_may_fail_is_neutral() -> None:
    assert (await one(job(build_allow_failure=True))).kind == "ci.neutral"


async def test_a_pipeline_of_a_branch_is_its_branchs_thread() -> None:
    context = (await one(pipeline())).context
    assert context.thread == f"{BASE}:acme/app:fix"
    assert context.related == (f"{BASE}@{SHA}",)
    assert context.code is not None
    assert not context.code.fork


async def test_a_pipeline_of_a_merge_request_is_its_thread_and_is_answered_there() -> None:
    context = (await one(pipeline(merge_request=request()))).context
    assert context.thread == f"{BASE}!7"
    assert context.joins == (f"{BASE}@{SHA}", f"{BASE}:acme/app:fix")
    assert context.reply_to is not None
    assert context.reply_to.get("iid") == "7"


async def test_a_pipeline_on_the_default_branch_joins_nobody() -> None:
    context = (await one(pipeline(branch="main"))).context
    assert context.thread == f"{BASE}/ci/main/pipeline"
    assert context.joins == ()


@pytest.mark.parametrize("more", [{"merge_request": request(source=12)}, {"merge_request": None}])
async def test_a_head_from_elsewhere_or_unknown_is_a_fork(more: Payload) -> None:
    context = (await one(pipeline(branch="refs/merge-requests/7/head", **more))).context
    assert context.code is not None
    assert context.code.fork
    assert context.thread == f"{BASE}!7"
    assert f"{BASE}@fork:{SHA}" in context.joins
    assert f"{BASE}:acme/app:fix" not in context.joins


@pytest.mark.feature("ci.gitlab")
async def test_each_state_is_told_once_and_a_second_end_is_news() -> None:
    running, failed = await one(pipeline("running")), await one(pipeline())
    again = pipeline()
    again["object_attributes"]["finished_at"] = "2026-06-01 11:00:00 UTC"
    keys = {running.dedupe, failed.dedupe, (await one(again)).dedupe}
    assert len(keys) == 3
    assert (await one(pipeline())).dedupe == failed.dedupe


@pytest.mark.feature("ci.gitlab")
async def test_the_idempotency_key_is_a_key_and_the_event_uuid_is_none() -> None:
    async with started() as connector:
        request = hook(pipeline(), idempotency_key="k-1", x_gitlab_event_uuid="same-for-all")
        (trigger,) = await connector.receive(request)
    assert trigger.dedupe[0] == "delivery:k-1"
    assert not any("same-for-all" in key for key in trigger.dedupe)


# ------------------------------------------------------------------ people
@pytest.mark.parametrize(
    ("action", "more", "kind"),
    [
        ("open", {}, "pr.opened"),
        ("close", {}, "pr.closed"),
        ("reopen", {}, "pr.reopened"),
        ("merge", {}, "pr.merged"),
        ("approved", {}, "review.submitted"),
        ("unapproved", {}, "review.dismissed"),
        ("update", {"oldrev": "b" * 40}, "pr.synchronize"),
        ("update", {}, "pr.updated"),
    ],
)
async def test_each_action_on_a_merge_request_has_its_kind(
    action: str, more: Payload, kind: str
) -> None:
    assert (await one(asked(action, **more))).kind == kind


async def test_an_edited_description_names_what_it_edits() -> None:
    payload = asked("update") | {"changes": {"description": {}}}
    made, edited = await one(asked()), await one(payload)
    assert edited.kind == "pr.edited"
    assert edited.context.edit_of == dict(made.context.facts)["native_id"]


async def test_a_note_that_mentions_us_speaks_to_us_unless_it_is_code() -> None:
    said = await one(note(f"@{BOT} please"), bot_login=BOT)
    assert said.kind == "comment.created"
    assert (said.context.address, said.content.expects_reply) == (Address.MENTION, True)
    quoted = await one(note(f"`@{BOT}` is an account"), bot_login=BOT)
    assert quoted.context.address is Address.NONE


async def test_a_note_on_a_line_is_a_review_comment() -> None:
    trigger = await one(note(position={"new_path": "a.py", "new_line": 3}))
    facts = dict(trigger.context.facts)
    assert trigger.kind == "review_comment.created"
    assert (facts["path"], facts["line"]) == ("a.py", "3")


@pytest.mark.parametrize(
    ("name", "kind"),
    [(BOT, "self"), ("project_11_bot_0f3a", "bot"), ("ann", "stranger")],
)
async def test_who_wrote_a_note_is_told_by_the_account(name: str, kind: str) -> None:
    trigger = await one(note() | {"user": user(name)}, bot_login=BOT)
    assert trigger.actor.kind == kind


# ------------------------------------------------------------------ the door
@pytest.mark.feature("ci.gitlab")
@pytest.mark.case("GP/13985")
@pytest.mark.parametrize(
    "body",
    [
        b'{"object_kind": "deployment"}',
        b'{"event_name": "project_create"}',
        b'{"object_kind": "pipeline"}',
        b'{"object_kind": "pipeline", "project": 3}',
        b"[]",
        b"no json",
    ],
)
async def test_what_is_unknown_or_unreadable_is_taken_and_counted(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """A 4xx would switch the hook off for good."""
    caplog.set_level(logging.INFO)
    async with started() as connector:
        assert await connector.receive(hook(body)) == ()
        assert connector.ignored.total() == 1
    assert "gitlab.ignored" in caplog.text


@pytest.mark.case("GP/13985")
async def test_an_event_of_another_project_is_taken_and_counted() -> None:
    async with started(projects=("acme/other",)) as connector:
        assert await connector.receive(hook(pipeline())) == ()
        assert connector.ignored == {"project": 1}


@pytest.mark.feature("ci.gitlab")
@pytest.mark.case("GP/13985")
@pytest.mark.parametrize("token", ["", "another", "ä"])
async def test_a_wrong_token_is_refused(token: str) -> None:
    request = hook(pipeline())
    forged = InboundRequest(headers={"x-gitlab-token": token}, body=request.body)
    async with started() as connector:
        with pytest.raises(TriggerRejectedError) as refused:
            await connector.receive(forged)
    assert refused.value.status == 401


async def test_gitlabs_own_notes_are_no_news() -> None:
    async with started() as connector:
        assert await connector.receive(hook(note("changed the title", system=True))) == ()
