"""Mind: what the scripted model answers to a request; the request alone decides.

The router opens an item for what nobody follows and forwards what somebody does. A worker looks,
runs two slow commands, deals with each round of feedback by a slow command and a reply, waits
for what is still to come, and reports and completes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from upright.cli.bench.ablation.heard import Called, Heard, Messages, calls, triggers
from upright.cli.bench.ablation.trace import ASKED, QUICK, SLOW
from upright.llm.scripted.decide import Answer, MadeCall

ROUTER: Final = "router"
WORKER: Final = "worker"
LAST: Final = "complete"
"""The tool by which a worker ends its task."""
CRITERIA: Final = ("the tests pass", "every round of feedback is answered")
_DEALT: Final = frozenset({"spawn", "forward"})
_COMMANDS: Final = (
    *(f"look {number}" for number in range(1, QUICK + 1)),
    *(f"test {number}" for number in range(1, SLOW + 1)),
)
Wanted = tuple[str, Mapping[str, Any]]
"""A call: the tool, and what it is given."""


def decide(body: Mapping[str, Any]) -> Answer:
    """Answer a chat request."""
    messages: Messages = body["messages"]
    agent = ROUTER if any(_name(tool) == "spawn" for tool in body["tools"]) else WORKER
    heard, done = triggers(messages), calls(messages)
    wanted = _route(heard, done) if agent == ROUTER else _work(heard, done)
    if not wanted:
        said = f"Dealt with {len(heard)} triggers so far; each has its worker."
        return Answer(agent=agent, rule="", text=said)
    made = tuple(
        MadeCall(id=f"call_{number}", name=tool, arguments=json.dumps(given))
        for number, (tool, given) in enumerate(wanted, start=len(done) + 1)
    )
    return Answer(agent=agent, rule=made[0].name, calls=made)


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool["function"]["name"])


# ------------------------------------------------------------------ the router
def _route(heard: Sequence[Heard], done: Sequence[Called]) -> list[Wanted]:
    dealt = {call.given.get("trigger") for call in done if call.tool in _DEALT}
    return [_way(one) for one in heard if one.id not in dealt and not one.kind.startswith("worker")]


def _way(one: Heard) -> Wanted:
    if one.follower:
        return "forward", {"trigger": one.id, "work": one.follower}
    goal = f"Do what task {one.number('task')} asks for, and answer every round of feedback."
    why = "One of us asks for it, and nobody follows this thread yet."
    return "spawn", {"trigger": one.id, "goal": goal, "criteria": CRITERIA, "why": why}


# ------------------------------------------------------------------ a worker
@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """How a worker's task stands, by what was heard and called."""

    asked: Heard
    rounds: Mapping[int, str]  # of feedback, with the trigger that brought it
    jobs: Mapping[str, str]  # command → its job
    running: Sequence[str]  # jobs that have not ended
    unread: Sequence[str]  # jobs whose end was told, and whose output was not read
    answered: frozenset[int]


def _work(heard: Sequence[Heard], done: Sequence[Called]) -> list[Wanted]:
    """Return a worker's next calls: the first thing that there is to do."""
    bench = _bench(heard, done)
    if bench.unread:
        return [("status", {"job": bench.unread[0]})]
    if bench.running:
        why = "the command runs; what came meanwhile is next"
        return [("wait", {"for": "job", "job": bench.running[0], "why": why})]
    new = sorted(set(bench.rounds) - bench.answered)
    command = _next_command(bench, new)
    if command:
        task = bench.asked.number("task")
        return [("run", {"argv": ["make", *command.split(), f"TASK={task}"]})]
    if new:
        rounds = ",".join(str(one) for one in new)
        said = f"Done: rounds={rounds}. It was the order of the rows; the tests pass again."
        return [("reply", {"trigger": bench.rounds[new[-1]], "text": said})]
    return _rest(bench)


def _next_command(bench: _Bench, new: Sequence[int]) -> str:
    """Return what is to be run next: a step of the task, or one for the newest feedback."""
    fix = [f"fix {new[-1]}"] if new else []
    return next((one for one in (*_COMMANDS, *fix) if one not in bench.jobs), "")


def _rest(bench: _Bench) -> list[Wanted]:
    """Wait for feedback, or report and complete."""
    if len(bench.answered) < bench.asked.number("rounds"):
        why = f"{len(bench.answered)} rounds are answered, more will come"
        return [("wait", {"for": "thread", "why": why, "look_first": "the newest round"})]
    proof = bench.jobs[_COMMANDS[-1]]
    text = f"Task {bench.asked.number('task')} is done: {proof} shows it."
    evidence = [{"criterion": one, "proof": proof} for one in CRITERIA]
    return [("report", {"text": text}), (LAST, {"evidence": evidence})]


def _bench(heard: Sequence[Heard], done: Sequence[Called]) -> _Bench:
    ran = [call for call in done if call.tool == "run" and "job" in call.told]
    ended = {str(call.told["job"]) for call in ran if call.told.get("outcome") == "exited"}
    told = [_job(one) for one in heard if one.kind == "job.finished"]
    read = {str(call.given["job"]) for call in done if call.tool == "status"}
    replies = [str(call.given["text"]) for call in done if call.tool == "reply"]
    jobs = {" ".join(call.given["argv"][1:3]): str(call.told["job"]) for call in ran}
    return _Bench(
        asked=next(one for one in heard if one.kind == ASKED),
        rounds={one.number("round"): one.id for one in heard if one.number("round")},
        jobs=jobs,
        running=[job for job in jobs.values() if job not in ended and job not in told],
        unread=[job for job in told if job not in read],
        answered=frozenset(_rounds(replies)),
    )


def _job(one: Heard) -> str:
    return str(json.loads(one.text)["job"])


def _rounds(replies: Sequence[str]) -> list[int]:
    lists = [text.partition("rounds=")[2].partition(".")[0] for text in replies]
    return [int(one) for numbers in lists for one in numbers.split(",")]
