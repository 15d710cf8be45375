"""The ablation in small: the same traces with and without pass-through, on virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import pytest
from click.testing import CliRunner

from upright.cli.bench.ablation import arms, trace
from upright.cli.bench.ablation.arms import ARMS, Arm, Cell, Grid
from upright.cli.bench.ablation.books import Books
from upright.cli.bench.ablation.command import p4
from upright.cli.bench.ablation.findings import Findings
from upright.cli.bench.ablation.meter import Meter, prompt_for
from upright.cli.bench.ablation.paired import change, interval
from upright.cli.bench.ablation.play import Outcome, Run, StuckError, World, play
from upright.cli.bench.ablation.tables import lines, tables
from upright.cli.bench.ablation.virtual import LoopClock, StandstillError, VirtualLoop
from upright.cli.bench.ablation.whole import ALL, NONE, Twin, Whole, measure
from upright.core.routing import PassThrough
from upright.core.transcript import Message, Role, ToolCall, ToolSpec
from upright.engine.ports import ChatReply, ChatRequest
from upright.llm.mapping import to_chat, to_tools
from upright.llm.scripted.cache import prompt_of
from upright.store.memory import Memory

pytestmark = pytest.mark.may_block
PEOPLE: Final = Arm(passes=PassThrough.PEOPLE)
TASKS: Final = 2


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    """Give a scratch database."""
    with Memory() as made:
        yield made


def played(arm: Arm, follow_ups: float, memory: Memory, *, seed: int = 3) -> Outcome:
    return play(Cell(arm=arm, follow_ups=follow_ups, seed=seed), TASKS, memory)


# ------------------------------------------------------------------ what it must show
@pytest.mark.clause("B6.9")
def test_without_follow_ups_the_arms_are_the_same_to_the_byte(memory: Memory) -> None:
    outcomes = [played(arm, 0.0, memory) for arm in ARMS]
    assert {one.transcript for one in outcomes} == {outcomes[0].transcript}
    assert (outcomes[0].router.calls, outcomes[0].told) == (3 * TASKS, TASKS)
    assert outcomes == [outcomes[0]] * len(ARMS)


@pytest.mark.clause("B6.9")
def test_without_pass_through_the_router_decides_more_and_the_work_takes_as_long(
    memory: Memory,
) -> None:
    every, people, none = (played(arm, 2.0, memory) for arm in (ALL, PEOPLE, NONE))
    assert every.router.calls == 3 * TASKS < people.router.calls < none.router.calls
    assert every.cached < people.cached < none.cached
    assert every.usd < none.usd
    assert none.mean_s == pytest.approx(every.mean_s, rel=0.01)
    assert {one.told for one in (every, people, none)} == {3 * TASKS}


def test_a_run_goes_the_same_way_each_time(memory: Memory) -> None:
    assert played(NONE, 1.0, memory) == played(NONE, 1.0, memory)


def test_prompts_only_grow_and_a_storm_is_folded(memory: Memory) -> None:
    folded, each = played(ALL, 8.0, memory), played(replace(ALL, folds=False), 8.0, memory)
    assert (folded.busts, each.busts, each.folded) == (0, 0, 0)
    assert folded.folded
    assert folded.worker.calls <= each.worker.calls


@pytest.mark.clause("B5.5")
def test_a_router_that_is_compacted_reads_less_and_forgets_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arms, "ROUTER_TOKENS", 6_000)
    whole, compacted = (played(replace(NONE, compacts=on), 4.0, memory) for on in (False, True))
    assert compacted.router.calls > whole.router.calls  # the summaries are calls, too
    assert compacted.router.input < whole.router.input
    assert (compacted.told, compacted.worker.calls) == (whole.told, whole.worker.calls)


# ------------------------------------------------------------------ it would notice
@dataclass(slots=True)
class Careless:
    """A meter whose router forgets to forward."""

    meter: Meter

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        reply = await self.meter.complete(request, on_part)
        forwards = any(call.name == "forward" for call in reply.calls)
        return replace(reply, calls=(), text="Seen.") if forwards else reply

    reckon = Meter.reckon


def test_a_trigger_that_no_worker_was_told_of_is_noticed(memory: Memory) -> None:
    memory.forget()
    books = Books()
    careless = Careless(Meter(clock=LoopClock(), books=books))
    world = World(arm=NONE, seed=1, store=memory, model=careless, books=books)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner, pytest.raises(StuckError):
        runner.run(Run(world).run(trace.draw(1, TASKS, 1.0)))


def test_router_transcripts_that_differ_without_follow_ups_are_a_failure(memory: Memory) -> None:
    found, one = Findings(), played(ALL, 0.0, memory)
    found.add(Cell(arm=ALL, follow_ups=0.0, seed=1), one)
    found.add(Cell(arm=NONE, follow_ups=0.0, seed=1), one)
    assert found.failures() == []
    found.add(Cell(arm=ALL, follow_ups=0.0, seed=2), one)
    found.add(Cell(arm=NONE, follow_ups=0.0, seed=2), replace(one, transcript="other", busts=2))
    assert [line.partition(":")[0] for line in found.failures()] == [
        "seed 2",
        "2 prompts did not begin with the one before",
    ]


# ------------------------------------------------------------------ its parts
def test_a_prompt_is_counted_as_the_scripted_server_counts_it() -> None:
    call = ToolCall(id="call_1", name="read", arguments='{"id":"tr_1"}')
    request = ChatRequest(
        role="router",
        session="se_1",
        messages=(
            Message(role=Role.SYSTEM, text="You are."),
            Message(role=Role.USER, text="Grüß dich"),
            Message(role=Role.ASSISTANT, calls=(call,)),
            Message(role=Role.TOOL, text="{}", call_id="call_1"),
        ),
        tools=(ToolSpec(name="read", description="Read.", parameters={"type": "object"}),),
    )
    tools = to_tools(request.tools)
    body = {"messages": to_chat(request.messages), "tools": tools}
    assert prompt_for(request, tools) == prompt_of(body)


def test_a_trace_with_more_follow_ups_begins_like_one_with_fewer() -> None:
    few, many = trace.draw(7, 4, 1.0), trace.draw(7, 4, 8.0)
    ids = [one.trigger.dedupe for one in few]
    same = [one for one in many if one.trigger.dedupe in ids]
    assert [one.at_s for one in same] == [one.at_s for one in few]
    assert [len(trace.draw(7, 4, each)) for each in (0.0, 0.5, 1.0, 8.0)] == [4, 6, 8, 36]
    assert trace.draw(8, 4, 1.0) != few


def test_an_interval_is_students_and_pairs_take_out_what_traces_share() -> None:
    assert interval([1.0, 2.0, 3.0, 4.0]).reach == pytest.approx(3.182 * 1.2910 / 2, rel=1e-3)
    paired = change([10.0, 1000.0, 100.0], [11.0, 1110.0, 109.0])
    assert (round(paired.middle, 6), paired.sign) == (10.0, 1)
    assert (change([1.0, 1.0], [1.5, 0.5]).sign, interval([1.0]).sign) == (0, 0)


def test_virtual_time_leaps_and_a_standstill_is_an_error() -> None:
    async def days() -> float:
        clock = LoopClock()
        async with asyncio.TaskGroup() as group:
            group.create_task(clock.sleep(86_400.0))
            group.create_task(clock.sleep(3 * 86_400.0))
        return clock.monotonic()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(days()) == 3 * 86_400.0
    loop = VirtualLoop()
    with pytest.raises(StandstillError):
        loop.run_forever()
    loop.close()


def test_the_tables_hold_every_arm_and_what_is_written_is_read_again(memory: Memory) -> None:
    grid = Grid(seeds=2, tasks=1, arms=(ALL, NONE), follow_ups=(0.0, 1.0))
    one = played(ALL, 1.0, memory)
    twin = Twin(arm=ALL, virtual=one, real=replace(one, mean_s=1.0))
    whole = Whole(found=measure(grid, memory), twins=[twin])
    whole.lengths[1] = whole.found
    shown = "\n".join(line for table in tables(whole) for line in lines(table))
    assert "Levels at 1 follow-up a task" in shown
    assert "router decisions        3.00 ± 0.00       5.00 ± 0.00" in shown
    again = Whole.of_json(json.loads(json.dumps(whole.as_json())))
    assert (again, again.failures()) == (whole, [])


def test_a_real_run_that_decides_otherwise_is_a_failure(memory: Memory) -> None:
    one = played(ALL, 1.0, memory)
    other = replace(one, router=replace(one.router, calls=one.router.calls + 1))
    more = replace(one, worker=replace(one.worker, cached=round(1.01 * one.worker.cached)))
    assert Twin(arm=ALL, virtual=one, real=one).agrees()
    for real in (other, more):
        whole = Whole(found=Findings(), twins=[Twin(arm=ALL, virtual=one, real=real)])
        assert whole.failures() == ["all: the real clock disagrees"]


def test_the_command_prints_every_run() -> None:
    done = CliRunner().invoke(p4, ["--seeds", "1", "--tasks", "1", "--at", "0", "--json"])
    printed = json.loads(done.stdout)
    assert (done.exit_code, printed["failures"], len(printed["runs"])) == (0, [], 6)
