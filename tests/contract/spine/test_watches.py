"""Watches: output and status of a running job wake its session, folded and capped (B10.5)."""

from __future__ import annotations

import json

import pytest

from fixtures.agents import AT_ONCE, call, named, worker
from fixtures.still_hub import DEVICE, START_MS, StillHub
from upright.agent import steps
from upright.core.errors import InvalidError
from upright.core.ids import JobId
from upright.core.trigger import StoredTrigger
from upright.core.watch import MAX_FIRED
from upright.core.work import WorkItem
from upright.engine.ports import ChatRequest
from upright.store import deadlines, intake, jobs, output, sessions, watches
from upright.store.errors import NotNowError
from upright.store.tables import SESSION, WATCH
from upright.store.unit import Unit
from upright_wire.command import Ending, Outcome, Started

GREEN = Outcome(ending=Ending.EXITED, started=Started.YES, number=0)


async def running(hub: StillHub) -> tuple[WorkItem, str]:
    """Let a sleeping worker have a job that runs."""
    item = await hub.opened()
    order = jobs.Order(
        session=item.session,
        work=item.id,
        call_id="c_1",
        device=DEVICE,
        spec_json="{}",
        digest="d",
        stdin=b"",
        epoch=1,
        background=True,
        turn="tu",
    )
    job = await hub.do(lambda u: jobs.queue(u, order))
    await hub.do(lambda u: jobs.began(u, jobs.read(u.c, job), Started.YES))
    await hub.asleep(item)
    return item, job


async def watch(hub: StillHub, job: str, pattern: str = "", every_s: int | None = None) -> str:
    def unit(u: Unit) -> str:
        return watches.add(u, jobs.read(u.c, job), pattern=pattern, every_s=every_s).id

    return await hub.do(unit)


async def prints(
    hub: StillHub, job: str, offset: int, data: bytes, *, name: str = "stdout"
) -> None:
    """Take output in, as the device's link does."""

    def unit(u: Unit) -> None:
        output.add(u.c, output.Stream(job, name), offset, data)
        watches.look(u, job)

    await hub.do(unit)


async def inbox(hub: StillHub, item: WorkItem) -> list[StoredTrigger]:
    return await hub.see(lambda c: intake.unread(c, item.session))


async def heard(hub: StillHub, item: WorkItem) -> list[str]:
    return [one.trigger.content.text for one in await inbox(hub, item)]


@pytest.mark.clause("B10.5")
async def test_a_line_that_matches_wakes_the_session_in_the_same_commit(hub: StillHub) -> None:
    item, job = await running(hub)
    await watch(hub, job, "ready")
    await prints(hub, job, 0, b"starting\n")
    assert await inbox(hub, item) == []
    await prints(hub, job, 9, b"server ready on 80\n")
    (told,) = await inbox(hub, item)
    assert (told.trigger.kind, told.trigger.content.text) == ("job.output", "server ready on 80")
    assert dict(told.trigger.context.facts)["job"] == job
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] == START_MS


@pytest.mark.clause("B10.5")
async def test_a_line_cut_in_pieces_and_sent_again_matches_once(hub: StillHub) -> None:
    item, job = await running(hub)
    await watch(hub, job, "READY*now")
    await prints(hub, job, 0, b"x\nREA")
    await prints(hub, job, 0, b"x\nREA")
    await prints(hub, job, 5, b"DY right ")
    await prints(hub, job, 2, b"READY right now\n")
    await prints(hub, job, 2, b"READY right now\nmore")
    await hub.reopen()
    await prints(hub, job, 0, b"x\nREADY right now\nmore\n")
    assert await heard(hub, item) == ["READY right now"]


@pytest.mark.clause("B10.5")
async def test_many_lines_of_one_look_are_one_trigger(hub: StillHub) -> None:
    item, job = await running(hub)
    await watch(hub, job, "FAIL")
    await prints(hub, job, 0, b"".join(b"FAIL %d\n" % n for n in range(30)))
    await prints(hub, job, 0, b"FAIL e\n", name="stderr")
    first, second = await heard(hub, item)
    assert first.count("\n") == 20
    assert first.endswith("[…and 10 more lines that match]")
    assert second == "FAIL e"


@pytest.mark.clause("B10.5")
async def test_after_its_last_report_a_watch_says_once_that_it_stops(hub: StillHub) -> None:
    item, job = await running(hub)
    await watch(hub, job, "x")
    for n in range(MAX_FIRED + 5):
        await prints(hub, job, 2 * n, b"x\n")
    told = await heard(hub, item)
    assert len(told) == MAX_FIRED
    assert [text for text in told if "stops here" in text] == told[-1:]
    assert (await hub.row(WATCH))["ended"]


@pytest.mark.clause("B10.5")
async def test_what_was_printed_before_the_watch_is_found(hub: StillHub) -> None:
    item, job = await running(hub)
    await prints(hub, job, 0, b"ready\n")
    await watch(hub, job, "ready")
    assert await heard(hub, item) == ["ready"]


@pytest.mark.clause("B10.5")
async def test_a_watch_ends_with_its_job_whose_last_line_needs_no_end(hub: StillHub) -> None:
    item, job = await running(hub)
    await watch(hub, job, "ready", every_s=60)
    await prints(hub, job, 0, b"all ready")
    assert await inbox(hub, item) == []
    await hub.do(lambda u: jobs.end(u, jobs.read(u.c, job), GREEN))
    kinds = [one.trigger.kind for one in await inbox(hub, item)]
    assert kinds == ["job.output", "job.finished"]
    row = await hub.row(WATCH)
    assert (row["ended"], row["next_ms"]) == (True, None)
    hub.clock.go_on(3600)
    assert await hub.do(deadlines.fire_due) == []


@pytest.mark.clause("B10.5", "B11.7")
@pytest.mark.case("DB/803")
async def test_an_interval_tells_the_status_and_missed_times_count_as_one(hub: StillHub) -> None:
    item, job = await running(hub)
    await watch(hub, job, every_s=60)
    assert await hub.see(deadlines.next_ms) == START_MS + 60_000
    hub.clock.go_on(59.9)
    assert await hub.do(deadlines.fire_due) == []
    await prints(hub, job, 0, b"half done\n")
    hub.clock.go_on(3600)
    assert await hub.do(deadlines.fire_due) == [item.session]
    assert await hub.do(deadlines.fire_due) == []
    (told,) = await inbox(hub, item)
    assert (told.trigger.kind, told.trigger.content.text) == ("job.status", "half done\n")
    hub.clock.go_on(60)
    assert await hub.do(deadlines.fire_due) == [item.session]


async def test_the_same_watch_is_one_and_there_are_not_too_many(hub: StillHub) -> None:
    _, job = await running(hub)
    assert await watch(hub, job, "a") == await watch(hub, job, "a")
    for n in range(watches.MAX_WATCHES - 1):
        await watch(hub, job, f"b{n}")
    with pytest.raises(NotNowError, match="watches already"):
        await watch(hub, job, "c")


async def test_a_job_that_has_ended_and_a_line_break_are_not_watched(hub: StillHub) -> None:
    _, job = await running(hub)
    with pytest.raises(InvalidError):
        await watch(hub, job, "a\nb")
    await hub.do(lambda u: jobs.end(u, jobs.read(u.c, job), GREEN))
    with pytest.raises(NotNowError, match="ended already"):
        await watch(hub, job, "a")


# ------------------------------------------------------------------ the tool, and ends
@pytest.mark.clause("B10.5", "B10.1")
async def test_a_worker_watches_its_job_and_sleeps_until_the_line_comes(hub: StillHub) -> None:
    def asks(request: ChatRequest) -> dict[str, object]:
        return {"job": named("jb")(request), "pattern": "ready"}

    agents, _ = await worker(
        hub,
        call("run", {"argv": ["serve"]}),
        call("watch", asks),
        call("wait", {"for": "thread", "why": "the server"}),
        limits=AT_ONCE,
    )
    agents.box.answer = lambda argv, stdin: None
    await agents.go()
    (row,) = await hub.rows(WATCH)
    assert await hub.asleep_for_ever() == []
    await prints(hub, row["job_id"], 0, b"ready\n")
    assert await agents.go() == 1
    assert "job.output" in agents.prompts()[-1][-1]


@pytest.mark.clause("B10.1", "B8.2")
async def test_a_background_job_that_ends_before_its_answer_is_told_once(hub: StillHub) -> None:
    item, job = await running(hub)
    await hub.do(lambda u: sessions.wake(u, item.session))
    (claim,) = await hub.claim()

    def unit(u: Unit) -> str:
        turn = steps.begin(u, claim)
        turn.jobs["c_1"] = JobId(job)
        jobs.end(u, jobs.read(u.c, job), GREEN)
        steps.answer_jobs(u, turn, ["c_1"])
        return turn.messages[-1].text

    answer = json.loads(await hub.do(unit))
    assert (answer["job"], answer["outcome"]) == (job, "ended")
    assert [one.trigger.kind for one in await inbox(hub, item)] == ["job.finished"]


@pytest.mark.clause("B10.3")
async def test_several_ends_cost_one_wake(hub: StillHub) -> None:
    runs = [call("run", {"argv": ["slow", str(n)], "background": True}) for n in range(3)]
    agents, item = await worker(
        hub, *runs, call("wait", {"for": "thread", "why": "news"}), limits=AT_ONCE
    )
    agents.box.answer = lambda argv, stdin: None
    await agents.go()
    calls = len(agents.chat.requests)
    for job in await hub.see(lambda c: jobs.of_session(c, item.session)):
        await agents.box.end(job.id, 0)
    assert await agents.go() == 1
    assert len(agents.chat.requests) == calls + 1
    assert agents.prompts()[-1][-1].count("kind=job.finished") == 3
