"""Turns over a real store: what tools answer, and how a turn comes to rest (B8, B10, B11)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from fixtures.agents import (
    AT_ONCE,
    DONE,
    PATCH,
    TEST,
    WAIT_CI,
    Say,
    answer,
    call,
    complete,
    few_steps,
    named,
    users,
    worker,
)
from fixtures.still_hub import ANN, EVE, START_MS, StillHub, trigger
from upright.agent.prompts.notices import NUDGE
from upright.core.trigger import Disposition
from upright.core.wait import WaitState
from upright.core.work import WorkState
from upright.engine.ports import (
    Lease,
)
from upright.store import deadlines, people
from upright.store.tables import DELIVERY, JOB, OUTBOX, REQUEST, SESSION, TURN, WAIT
from upright.store.unit import Unit


async def endings(hub: StillHub) -> list[str]:
    """Return how the turns ended, in order."""
    return [row["ending"] for row in await hub.rows(TURN)]


# ------------------------------------------------------------------ what tools answer
@pytest.mark.clause("B8.2")
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("fly", "{}", "there is no tool 'fly'; there are run, stop,"),
        ("run", "{", "the arguments of run don't fit"),
        ("run", "[]", "the arguments of run don't fit"),
        ("run", '{"argv":[]}', "argv"),
        ("run", '{"argv":["ls"],"shell":true}', "shell"),
        ("run", '{"argv":["a\\u0000b"]}', "the command can't be sent"),
        ("stop", '{"job":"jb_nobody"}', "there is no job jb_nobody"),
        ("wait", '{"for":"timer","why":"x"}', "a timer needs seconds"),
        ("wait", '{"for":"job","job":"jb_x","why":"x"}', "there is no job 'jb_x'"),
        ("complete", '{"evidence":[]}', "criteria without evidence: tests pass"),
        (
            "complete",
            '{"evidence":[{"criterion":"tests pass","proof":"trust me"}]}',
            "names no job, trigger, effect or commit",
        ),
        (
            "complete",
            '{"evidence":[{"criterion":"tests pass","proof":"jb_' + "0" * 26 + '"}]}',
            "is nothing that this item did or was told",
        ),
        ("read", '{"id":"xx_1"}', "is not the id of anything that can be read"),
        ("read", '{"id":"tr_' + "0" * 26 + '"}', "that you may read"),
    ],
)
async def test_a_call_that_cannot_be_done_is_told_to_the_model_and_changes_nothing(
    hub: StillHub, tool: str, arguments: str, said: str
) -> None:
    agents, item = await worker(hub, call(tool, arguments), TEST, WAIT_CI)
    await agents.go()
    refused, *_ = await agents.told(item.session)
    assert said in refused["error"]
    assert len(await hub.rows(JOB)) == 1
    assert len(await hub.rows(WAIT)) == 1
    assert (await hub.item(item)).evidence == ()
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL


@pytest.mark.clause("B8.2", "B10.1")
async def test_a_command_that_ends_in_time_is_answered_with_its_end(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, WAIT_CI)
    agents.box.answer = lambda argv, stdin: (2, b"1 failed\n")
    await agents.go()
    said, _ = await agents.told(item.session)
    assert (said["outcome"], said["code"], said["started"]) == ("exited", 2, "yes")
    assert said["stdout"] == "1 failed\n"
    assert await hub.rows(DELIVERY, wake=True, taken_n=None) == []


@pytest.mark.clause("B8.2")
async def test_several_calls_of_one_step_are_all_begun_and_answered_in_their_order(
    hub: StillHub,
) -> None:
    both = Say(calls=(("run", {"argv": ["a"]}), ("run", {"argv": ["b"]}), ("fly", "{}")))
    agents, item = await worker(hub, both, WAIT_CI)
    agents.box.answer = lambda argv, stdin: (0, argv[0].encode())
    await agents.go()
    loaded = await agents.loaded(item.session)
    assert [one.call_id for one in loaded.answers][:3] == ["call_0_2", "call_0_0", "call_0_1"]
    assert [said.get("stdout") for said in await agents.told(item.session)][1:3] == ["a", "b"]
    assert len(agents.chat.requests) == 2


@pytest.mark.clause("B10.3")
@pytest.mark.case("OC/116015")
async def test_the_same_command_twice_while_it_runs_is_one_job(hub: StillHub) -> None:
    twice = Say(calls=(("run", PATCH), ("run", PATCH)))
    agents, item = await worker(hub, twice, WAIT_CI)
    await agents.go()
    assert len(await hub.rows(JOB)) == 1
    note, ended, _ = await agents.told(item.session)
    assert note["note"] == "this very command runs already"
    assert (note["job"], ended["outcome"]) == (ended["job"], "exited")


# ------------------------------------------------------------------ placeholders
@pytest.mark.clause("B8.3", "B10.1", "B10.2")
@pytest.mark.parametrize(("is_on", "said"), [(True, "still_running"), (False, "queued")])
async def test_a_command_that_takes_long_is_a_placeholder_and_its_end_a_trigger(
    hub: StillHub, *, is_on: bool, said: str
) -> None:
    agents, item = await worker(hub, TEST, Say("I wait for it."), DONE, limits=AT_ONCE)
    agents.box.answer = lambda argv, stdin: None
    agents.box.is_on = is_on
    async with agents.running():
        await agents.turns()
        (job,) = await hub.rows(JOB)
        if is_on:
            await hub.until(lambda: begun(hub))
    before = await agents.transcript(item.session)
    (placeholder,) = await agents.told(item.session)
    assert placeholder["outcome"] in {said, "queued"}
    assert placeholder["job"] == job["id"]
    assert "job.finished" in placeholder["note"]
    assert (await hub.item(item)).state is WorkState.WAITING_JOB
    await agents.box.end(job["id"], 0, b"done\n")
    assert await agents.turns() == 1
    after = await agents.transcript(item.session)
    assert after[: len(before)] == before
    assert "kind=job.finished" in users((await agents.loaded(item.session)).messages)[-1]
    assert (await hub.item(item)).state is WorkState.COMPLETED


async def begun(hub: StillHub) -> bool:
    """Say whether the job runs."""
    return bool((await hub.row(JOB))["state"] == "running")


@pytest.mark.clause("B8.3")
async def test_an_end_that_comes_right_after_the_placeholder_is_still_a_trigger(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, TEST, Say("I look around."), DONE, limits=AT_ONCE)
    agents.box.is_on = False

    async def it_ends() -> None:
        await agents.box.end((await hub.row(JOB))["id"], 0)

    agents.chat.meanwhile[1] = it_ends
    await agents.go()
    told = users((await agents.loaded(item.session)).messages)
    assert [text.count("kind=job.finished") for text in told] == [0, 1]


@pytest.mark.clause("B15.1")
async def test_two_replies_of_one_turn_are_two_effects(hub: StillHub) -> None:
    progress = {"text": "One.", "purpose": "progress"}
    two = Say(calls=(("reply", progress), ("reply", {**progress, "text": "Two."})))
    agents, _ = await worker(hub, two, call("reply", {"text": "Three."}), WAIT_CI)
    await agents.go()
    assert [row["text"] for row in await hub.rows(OUTBOX)] == ["One.", "Two.", "Three."]


@pytest.mark.clause("B10.1")
async def test_a_background_command_is_not_waited_for(hub: StillHub) -> None:
    background = call("run", {"argv": ["serve"], "background": True})
    agents, item = await worker(hub, background, WAIT_CI)
    agents.box.answer = lambda argv, stdin: None
    await agents.go()
    said, _ = await agents.told(item.session)
    assert said["outcome"] in {"queued", "still_running"}
    assert (await hub.item(item)).state is WorkState.WAITING_JOB


@pytest.mark.clause("B11.4")
async def test_the_end_of_a_job_is_no_news_on_the_thread(hub: StillHub) -> None:
    both = Say(
        calls=(
            ("run", {"argv": ["serve"], "background": True}),
            ("wait", {"for": "thread", "why": "CI runs"}),
        )
    )
    agents, item = await worker(hub, both, Say("It ended; CI still runs."))
    agents.box.answer = lambda argv, stdin: None
    await agents.go()
    (job,) = await hub.rows(JOB)
    await agents.box.end(job["id"], 0)
    await agents.go()
    waits = {row["kind"]: row["state"] for row in await hub.rows(WAIT)}
    assert waits == {"external": WaitState.OPEN, "job_result": WaitState.MATCHED}
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL
    assert await endings(hub) == ["rest", "rest"]


@pytest.mark.clause("B10.2", "B10.1")
async def test_a_job_that_never_left_is_stopped_and_told_as_stopped(hub: StillHub) -> None:
    stop = call("stop", lambda request: {"job": named("jb")(request)})
    agents, item = await worker(hub, TEST, stop, WAIT_CI, limits=AT_ONCE)
    agents.box.is_on = False
    await agents.go()
    assert (await hub.row(JOB))["state"] == "stopped"
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL


# ------------------------------------------------------------------ how a turn rests
@pytest.mark.clause("B8.7")
async def test_a_worker_that_only_talks_is_nudged_once_and_then_a_person_is_asked(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, Say("Hm."), Say("Well."), WAIT_CI)
    await agents.go()
    assert users((await agents.loaded(item.session)).messages).count(NUDGE) == 1
    assert await endings(hub) == ["unsettled"]
    assert (await hub.item(item)).state is WorkState.WAITING_OPERATOR
    assert "Well." in (await hub.row(REQUEST))["prompt"]
    await answer(hub)
    await agents.go()
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL


@pytest.mark.clause("B10.4")
async def test_the_same_call_with_the_same_result_three_times_asks_a_person(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, TEST, TEST, TEST, TEST, WAIT_CI)
    await agents.go()
    assert await endings(hub) == ["no_progress"]
    assert len(agents.box.ran) == 3
    assert (await hub.item(item)).state is WorkState.WAITING_OPERATOR
    await answer(hub)
    await agents.go()
    assert await endings(hub) == ["no_progress", "no_progress"]
    await answer(hub)
    await agents.go()
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL


@pytest.mark.clause("B10.4")
async def test_another_result_is_progress(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, TEST, TEST, WAIT_CI)
    agents.box.answer = lambda argv, stdin: (1, b"%d failed" % (9 - len(agents.box.ran)))
    await agents.go()
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL


@pytest.mark.clause("B13.1")
async def test_a_turn_of_too_many_steps_stops_and_a_person_is_asked(hub: StillHub) -> None:
    agents, item = await worker(
        hub,
        *(call("plan", {"steps": [{"text": str(n)}]}) for n in range(3)),
        WAIT_CI,
        limits=few_steps(2),
    )
    await agents.go()
    assert (await endings(hub), len(agents.chat.requests)) == (["too_long"], 2)
    assert (await hub.item(item)).state is WorkState.WAITING_OPERATOR
    await answer(hub)
    await agents.go()
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL


@pytest.mark.clause("B11.5", "B8.4")
async def test_what_came_before_the_wait_was_registered_is_found(hub: StillHub) -> None:
    agents, item = await worker(hub, WAIT_CI, complete("failed", tests_pass=named("tr")))
    agents.chat.meanwhile[0] = lambda: hub.one(trigger("ci.passed"))
    assert await agents.go() == 1
    assert (await hub.item(item)).state is WorkState.COMPLETED
    assert [row["state"] for row in await hub.rows(WAIT)] == ["matched"]


@pytest.mark.clause("B8.4", "B9.4")
async def test_what_comes_during_a_turn_is_taken_at_the_next_safe_point_as_one_batch(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, TEST, WAIT_CI)

    async def two_come() -> None:
        await hub.accept(trigger("comment.created", by=ANN), trigger("ci.passed", by=EVE))

    agents.chat.meanwhile[0] = two_come
    await agents.go()
    first, second = users((await agents.loaded(item.session)).messages)
    assert "[1 of 1]" in first
    assert "[1 of 2]" in second
    assert "[2 of 2]" in second
    assert "<card>" in first
    assert "<card>" not in second
    roles = [message.role for message in (await agents.loaded(item.session)).messages]
    assert roles[:5] == ["system", "user", "assistant", "tool", "user"]


@pytest.mark.clause("B6.6", "B11.11")
async def test_completion_ends_the_session_and_later_triggers_go_to_the_router(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, TEST, DONE)
    await agents.go()
    assert (await hub.row(SESSION, id=item.session))["ended_at_ms"] == START_MS
    assert (await hub.item(item)).evidence[0].criterion == "tests pass"
    came = await hub.one(trigger())
    assert (came.disposition, came.woke) == (Disposition.STARTED, (await hub.router(),))


@pytest.mark.clause("B11.6")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("run", {"argv": ["rm"]}),
        ("reply", {"text": "one more thing"}),
        ("ask", {"question": "is that all?"}),
        ("wait", {"for": "thread", "why": "x"}),
        ("plan", {"steps": []}),
    ],
)
async def test_nothing_more_is_done_for_an_item_that_is_over(
    hub: StillHub, tool: str, arguments: Mapping[str, Any]
) -> None:
    evidence = [{"criterion": "tests pass", "proof": "c0ffee0"}]
    last = Say(calls=(("complete", {"evidence": evidence}), (tool, arguments)))
    agents, item = await worker(hub, last)
    await agents.go()
    assert "is over" in (await agents.told(item.session))[1]["error"]
    assert (await hub.item(item)).state is WorkState.COMPLETED
    for table in (JOB, OUTBOX, REQUEST, WAIT):
        assert await hub.rows(table) == []


@pytest.mark.clause("B8.6")
async def test_a_draining_hub_ends_turns_at_a_safe_point_and_they_go_on_later(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, call("plan", {"steps": []}), WAIT_CI)

    async def drain() -> None:
        agents.drains = True

    agents.chat.meanwhile[0] = drain
    (claim,) = await hub.claim()
    await agents.runner()(Lease(session=claim.session, epoch=claim.epoch))
    assert await endings(hub) == ["interrupted"]
    assert len(agents.chat.requests) == 1
    agents.drains = False
    await agents.go()
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL
    assert len(agents.chat.requests) == 2


@pytest.mark.clause("B11.2", "B11.8")
@pytest.mark.parametrize(
    "last", [WAIT_CI, DONE, Say("Hm."), TEST], ids=["wait", "done", "hm", "run"]
)
async def test_an_item_that_is_blocked_in_the_middle_of_its_turn_waits_for_the_person(
    hub: StillHub, last: Say
) -> None:
    ask = call("ask", {"question": "Which branch?"})
    agents, item = await worker(hub, TEST, ask, last, WAIT_CI)
    await agents.go()

    async def a_week_passes() -> None:
        hub.clock.go_on(8 * 24 * 3600)
        await hub.do(deadlines.fire_due)

    agents.chat.meanwhile[2] = a_week_passes
    await hub.one(trigger("comment.created", by=ANN))
    await agents.go()
    assert (await hub.item(item)).state is WorkState.BLOCKED
    assert await agents.go() == 0
    assert await hub.asleep_for_ever() == []
    for asked in await hub.rows(REQUEST, state="asked"):
        await hub.do(partial(give, asked["id"]))
    await agents.go()
    assert (await hub.item(item)).state is not WorkState.BLOCKED


def give(request: str, u: Unit) -> None:
    """Answer a question."""
    people.answer(u, request, "main", "ann")
