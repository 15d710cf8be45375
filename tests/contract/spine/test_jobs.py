"""Jobs on a real database: the first end stands, output comes by offset, a stop is a request."""

from __future__ import annotations

import pytest

from fixtures.still_hub import DEVICE, StillHub
from upright.core.ids import JobId
from upright.core.job import Job, JobState
from upright.core.wait import WaitKind
from upright.core.work import WorkItem, WorkState
from upright.store import intake, jobs, output, waits
from upright.store.errors import OutputGapError, UnknownIdError
from upright.store.output import Stream
from upright.store.tables import EVENT, JOB, LEDGER, OUTPUT, WAIT
from upright.store.unit import Unit
from upright_wire.command import Ending, Outcome, Started

GREEN = Outcome(ending=Ending.EXITED, started=Started.YES, number=0, elapsed_ms=1500)
RED = Outcome(ending=Ending.EXITED, started=Started.YES, number=1)
KILLED = Outcome(ending=Ending.KILLED, started=Started.YES)
VANISHED = Outcome(ending=Ending.LOST, started=Started.UNKNOWN, text="gone")


async def queued(
    hub: StillHub, *, item: WorkItem | None = None, call: str = "c_1", background: bool = False
) -> JobId:
    """Queue a job for an item's worker."""
    item = item or await hub.opened()
    order = jobs.Order(
        session=item.session,
        work=item.id,
        call_id=call,
        device=DEVICE,
        spec_json="{}",
        digest="same",
        stdin=b"",
        epoch=1,
        background=background,
        turn="tu",
    )
    return await hub.do(lambda u: jobs.queue(u, order))


async def end(hub: StillHub, job: str, outcome: Outcome) -> bool:
    return await hub.do(lambda u: jobs.end(u, jobs.read(u.c, job), outcome))


async def began(hub: StillHub, job: str, started: Started = Started.YES) -> None:
    await hub.do(lambda u: jobs.began(u, jobs.read(u.c, job), started))


async def see(hub: StillHub, job: str) -> Job:
    return await hub.see(lambda c: jobs.read(c, job))


# ------------------------------------------------------------------ the end
@pytest.mark.clause("B10.2")
@pytest.mark.parametrize(
    ("outcome", "state", "code"),
    [
        (GREEN, JobState.FINISHED, 0),
        (RED, JobState.FAILED, 1),
        (KILLED, JobState.STOPPED, None),
        (VANISHED, JobState.LOST, None),
    ],
)
async def test_an_end_becomes_the_jobs_state_and_is_charged(
    hub: StillHub, outcome: Outcome, state: JobState, code: int | None
) -> None:
    job = await queued(hub)
    await began(hub, job)
    assert await end(hub, job, outcome)
    found = await see(hub, job)
    assert (found.state, found.outcome, found.code) == (state, outcome.ending.value, code)
    assert [row["seconds"] for row in await hub.rows(LEDGER)] == [outcome.elapsed_ms / 1000]


@pytest.mark.clause("B10.2")
@pytest.mark.case("HO/2252")
async def test_the_first_end_stands_whatever_is_reported_later(hub: StillHub) -> None:
    job = await queued(hub, background=True)
    await began(hub, job)
    assert await end(hub, job, GREEN)
    before = await hub.row(JOB)
    for late in (GREEN, RED, KILLED, VANISHED):
        assert not await end(hub, job, late)
    await began(hub, job)
    assert not await hub.do(lambda u: jobs.stop(u, jobs.read(u.c, job)))
    assert await hub.row(JOB) == before
    assert len(await hub.rows(EVENT, stop="command.ended")) == 1
    assert len(await hub.rows(LEDGER)) == 1


@pytest.mark.clause("B10.2")
async def test_an_end_that_races_a_stop_leaves_one_record(hub: StillHub) -> None:
    job = await queued(hub)
    await hub.do(lambda u: jobs.mark_sent(u.c, job))
    await began(hub, job)
    assert await hub.do(lambda u: jobs.stop(u, jobs.read(u.c, job)))
    assert (await see(hub, job)).state is JobState.STOPPING
    assert await end(hub, job, GREEN)
    assert not await end(hub, job, KILLED)
    assert (await see(hub, job)).state is JobState.FINISHED


async def test_a_late_report_that_it_began_leaves_a_stopping_job_stopping(hub: StillHub) -> None:
    job = await queued(hub)
    await hub.do(lambda u: jobs.mark_sent(u.c, job))
    await hub.do(lambda u: jobs.stop(u, jobs.read(u.c, job)))
    await began(hub, job)
    found = await see(hub, job)
    assert (found.state, found.started) == (JobState.STOPPING, "yes")


async def test_only_a_report_that_it_runs_makes_a_job_running(hub: StillHub) -> None:
    job = await queued(hub)
    await began(hub, job, Started.NO)
    assert (await see(hub, job)).state is JobState.QUEUED
    hub.clock.go_on(1)
    await began(hub, job)
    first = await see(hub, job)
    hub.clock.go_on(1)
    await began(hub, job)
    assert (await see(hub, job)) == first
    assert len(await hub.rows(EVENT, stop="command.started")) == 1


# ------------------------------------------------------------------ who is told
@pytest.mark.clause("B8.3", "B10.1")
async def test_the_end_of_a_background_job_is_told_once_and_names_it(hub: StillHub) -> None:
    item = await hub.opened()
    job = await queued(hub, item=item, background=True)
    await hub.asleep(item)
    await end(hub, job, RED)
    (notice,) = await hub.see(lambda c: intake.unread(c, item.session))
    assert notice.trigger.kind == "job.finished"
    assert dict(notice.trigger.context.facts) == {"job": job, "outcome": "exited"}
    assert notice.trust.label == "member"
    assert (await see(hub, job)).reported


@pytest.mark.clause("B10.1")
async def test_the_end_of_a_job_that_its_turn_waits_for_is_told_to_nobody(hub: StillHub) -> None:
    item = await hub.opened()
    job = await queued(hub, item=item)
    await hub.asleep(item)
    await end(hub, job, GREEN)
    assert await hub.see(lambda c: intake.unread(c, item.session)) == []


@pytest.mark.clause("B11.4")
@pytest.mark.case("HO/2565")
async def test_an_end_matches_the_wait_for_exactly_this_job(hub: StillHub) -> None:
    item = await hub.opened()
    waited = await queued(hub, item=item, background=True)
    other = await queued(hub, item=item, call="c_2", background=True)
    asked = waits.Asked(kind=WaitKind.JOB, ref=waited, why="the build")
    await hub.do(lambda u: waits.register(u, item.id, asked))
    await hub.asleep(item)
    assert (await hub.item(item)).state is WorkState.WAITING_JOB
    await end(hub, other, GREEN)
    assert (await hub.row(WAIT))["state"] == "open"
    await end(hub, waited, GREEN)
    assert (await hub.row(WAIT))["state"] == "matched"


@pytest.mark.clause("B10.3")
async def test_a_twin_is_found_while_it_lives_and_in_its_own_session_only(hub: StillHub) -> None:
    item = await hub.opened()
    job = await queued(hub, item=item)
    found = await hub.see(lambda c: jobs.running_twin(c, item.session, "same"))
    assert found is not None
    assert found.id == job
    assert await hub.see(lambda c: jobs.running_twin(c, item.session, "other")) is None
    assert await hub.see(lambda c: jobs.running_twin(c, "se_other", "same")) is None
    await end(hub, job, GREEN)
    assert await hub.see(lambda c: jobs.running_twin(c, item.session, "same")) is None


# ------------------------------------------------------------------ stopping and sending
@pytest.mark.clause("B10.2")
async def test_a_job_that_never_left_the_hub_is_stopped_at_once(hub: StillHub) -> None:
    job = await queued(hub)
    assert await hub.do(lambda u: jobs.stop(u, jobs.read(u.c, job)))
    found = await see(hub, job)
    assert (found.state, found.outcome, found.started) == (JobState.STOPPED, "cancelled", "no")
    assert not await hub.do(lambda u: jobs.mark_sent(u.c, job))
    assert await hub.see(lambda c: jobs.unsettled(c, DEVICE)) == []


async def test_only_a_queued_job_leaves(hub: StillHub) -> None:
    job = await queued(hub)
    assert await hub.do(lambda u: jobs.mark_sent(u.c, job))
    await began(hub, job)
    assert not await hub.do(lambda u: jobs.mark_sent(u.c, job))


async def test_a_device_may_forget_its_own_settled_jobs_and_no_others(hub: StillHub) -> None:
    item = await hub.opened()
    settled = await queued(hub, item=item)
    open_one = await queued(hub, item=item, call="c_2")
    await hub.do(lambda u: jobs.mark_settled(u.c, settled))
    ids = [settled, open_one, "jb_foreign"]
    assert await hub.see(lambda c: jobs.settled_among(c, DEVICE, ids)) == [settled]
    assert await hub.see(lambda c: jobs.settled_among(c, "dv_other", ids)) == []
    assert [job.id for job in await hub.see(lambda c: jobs.unsettled(c, DEVICE))] == [open_one]


async def test_a_job_that_is_not_there_is_said_to_be_unknown(hub: StillHub) -> None:
    with pytest.raises(UnknownIdError):
        await see(hub, "jb_nobody")


# ------------------------------------------------------------------ output
async def add(hub: StillHub, stream: Stream, offset: int, data: bytes) -> int:
    return await hub.do(lambda u: output.add(u.c, stream, offset, data))


async def test_output_is_kept_once_whatever_comes_twice(hub: StillHub) -> None:
    out = Stream(await queued(hub), "stdout")
    assert await add(hub, out, 0, b"hello ") == 6
    assert await add(hub, out, 0, b"hello ") == 6
    assert await add(hub, out, 3, b"lo world") == 11
    assert await hub.see(lambda c: output.read(c, out, 0, 99)) == (0, b"hello world")
    assert len(await hub.rows(OUTPUT)) == 2


@pytest.mark.clause("E5.4")
async def test_output_behind_missing_bytes_is_refused_and_nothing_is_kept(hub: StillHub) -> None:
    out = Stream(await queued(hub), "stdout")
    await add(hub, out, 0, b"abc")
    for call in (add(hub, out, 4, b"e"), skip(hub, out, 4, 1)):
        with pytest.raises(OutputGapError) as refused:
            await call
        assert (refused.value.have, refused.value.offset) == (3, 4)
    assert await hub.see(lambda c: output.length(c, out)) == 3


async def skip(hub: StillHub, stream: Stream, offset: int, count: int) -> int:
    return await hub.do(lambda u: output.skip(u.c, stream, offset, count))


async def test_streams_do_not_mix(hub: StillHub) -> None:
    job = await queued(hub)
    await add(hub, Stream(job, "stdout"), 0, b"out")
    await add(hub, Stream(job, "stderr"), 0, b"problem")
    found = await see(hub, job)
    assert (found.stdout_bytes, found.stderr_bytes) == (3, 7)
    assert await hub.see(lambda c: output.shown(c, Stream(job, "stderr"))) == "problem"


@pytest.mark.clause("E5.5")
async def test_bytes_that_were_not_kept_are_counted_and_read_around(hub: StillHub) -> None:
    out = Stream(await queued(hub), "stdout")
    await add(hub, out, 0, b"head")
    assert await skip(hub, out, 4, 96) == 100
    assert await skip(hub, out, 4, 96) == 100
    await add(hub, out, 100, b"tail")
    assert await hub.see(lambda c: output.read(c, out, 0, 99)) == (0, b"head")
    assert await hub.see(lambda c: output.read(c, out, 4, 99)) == (100, b"tail")
    assert await hub.see(lambda c: output.read(c, out, 50, 99)) == (100, b"tail")
    assert await hub.see(lambda c: output.read(c, out, 104, 99)) == (104, b"")


async def test_output_is_read_from_the_middle_of_a_piece_within_a_bound(hub: StillHub) -> None:
    out = Stream(await queued(hub), "stdout")
    for at in range(0, 30, 10):
        await add(hub, out, at, b"0123456789")
    assert await hub.see(lambda c: output.read(c, out, 5, 10)) == (5, b"5678901234")
    assert await hub.see(lambda c: output.read(c, out, 10, 3)) == (10, b"012")


@pytest.mark.clause("B7.3")
async def test_long_output_is_shown_head_and_tail_with_the_place_to_read_on(hub: StillHub) -> None:
    job = await queued(hub)
    out = Stream(job, "stdout")
    whole = b"".join(b"line %06d\n" % n for n in range(2000))
    await add(hub, out, 0, whole)
    text = await hub.see(lambda c: output.shown(c, out))
    half = output.SHOWN_BYTES // 2
    head, notice, tail = text.partition(f"\n[…bytes {half} to {len(whole) - half} of {len(whole)}")
    assert notice
    assert head == whole[:half].decode()
    assert tail.endswith(whole[-half:].decode())
    assert f"read_output({job}, stdout, {half})" in tail


async def test_the_result_names_what_is_known_and_no_more(hub: StillHub) -> None:
    job = await queued(hub)
    result = await hub.see(lambda c: output.result(c, jobs.read(c, job)))
    assert (result["outcome"], result["started"], "code" in result) == ("queued", "no", False)
    await began(hub, job)
    result = await hub.see(lambda c: output.result(c, jobs.read(c, job)))
    assert (result["outcome"], result["started"]) == ("still_running", "yes")
    hub.clock.go_on(2.5)
    await end(hub, job, RED)
    result = await hub.see(lambda c: output.result(c, jobs.read(c, job)))
    assert (result["outcome"], result["code"], result["seconds"]) == ("exited", 1, 2.5)


async def test_a_unit_that_fails_keeps_no_output(hub: StillHub) -> None:
    out = Stream(await queued(hub), "stdout")

    def unit(u: Unit) -> None:
        output.add(u.c, out, 0, b"abc")
        output.add(u.c, out, 9, b"abc")

    with pytest.raises(OutputGapError):
        await hub.do(unit)
    assert await hub.rows(OUTPUT) == []
