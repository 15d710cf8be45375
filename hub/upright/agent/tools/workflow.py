"""Workflow: plan, wait, ask, report, complete: how a worker moves its own item (B11)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.api import Actor, ActorKind, Channel
from upright.core import work as machine
from upright.core.errors import InvalidError
from upright.core.wait import WaitKind
from upright.core.work import Evidence, PlanStep
from upright.store import endings, evidence, intake, jobs, relations, sessions, waits, work
from upright.store.errors import UnknownIdError
from upright.store.evidence import Claim


@arguments(config=STRICT)
class StepArguments:
    """A step of the plan."""

    text: str = Field(min_length=1, max_length=500)
    done: bool = False


@arguments(config=STRICT)
class PlanArguments:
    """The whole plan; it replaces the one before."""

    steps: list[StepArguments] = Field(max_length=50)


def _plan(here: Here, asked: PlanArguments) -> Outcome:
    steps = tuple(PlanStep(text=step.text, done=step.done) for step in asked.steps)
    item = replace(here.own_item(), plan=steps)
    work.save_plan(here.u, item)
    return Done(body={"plan": len(steps), "done": sum(step.done for step in steps)})


# ------------------------------------------------------------------ people
@arguments(config=STRICT)
class AskArguments:
    """A question to a person."""

    question: str = Field(min_length=1, max_length=4000)


def _ask(here: Here, asked: AskArguments) -> Outcome:
    request = work.ask(here.u, here.own_item(), asked.question)
    here.after.timers = True
    return Done(body={"waiting": True, "for": "operator", "request": request}, ends_turn=True)


# ------------------------------------------------------------------ waiting
@arguments(config=STRICT)
class WaitArguments:
    """What to wait for, why, and what to look at first when it came."""

    why: str = Field(min_length=1, max_length=500)
    for_: Literal["thread", "job", "timer", "operator"] = Field(alias="for")
    look_first: str = Field(default="", max_length=500)
    job: str = ""
    seconds: int | None = Field(default=None, gt=0, description="for a timer")
    deadline_s: int | None = Field(default=None, gt=0)


def _wait(here: Here, asked: WaitArguments) -> Outcome:
    item = here.own_item()
    if asked.for_ == "operator":
        return _ask(here, AskArguments(question=asked.why))
    if asked.for_ == "timer" and asked.seconds is None:
        raise refused("a timer needs seconds")
    kind, ref = _source(here, asked)
    wait = waits.register(
        here.u,
        item.id,
        waits.Asked(
            kind=kind,
            ref=ref,
            why=asked.why,
            look_first=asked.look_first,
            deadline_s=asked.seconds if kind is WaitKind.TIMER else asked.deadline_s,
        ),
    )
    here.after.timers = True
    body = {"waiting": True, "for": asked.for_, "wait": wait.id, "until_ms": wait.deadline_ms}
    return Done(body=body, ends_turn=True)


def _source(here: Here, asked: WaitArguments) -> tuple[WaitKind, str]:
    match asked.for_:
        case "job":
            return WaitKind.JOB, _live_job(here, asked.job)
        case "timer":
            return WaitKind.TIMER, ""
        case _:
            return WaitKind.EXTERNAL, here.own_item().thread


def _live_job(here: Here, job_id: str) -> str:
    """Return the job; one that has ended already can't be waited for (B11.5)."""
    try:
        job = jobs.read(here.u.c, job_id)
    except UnknownIdError as error:
        raise refused("there is no job {!r}", job_id) from error
    if job.session != here.lease.session:
        raise refused("{} is not a job of this session", job_id)
    if job.over:
        raise refused("{} has ended already: {}; read it with status", job_id, job.outcome)
    jobs.into_background(here.u, job)
    return job.id


# ------------------------------------------------------------------ the router
@arguments(config=STRICT)
class ReportArguments:
    """A conclusion that the router should know."""

    text: str = Field(min_length=1, max_length=8000)


def _report(here: Here, asked: ReportArguments) -> Outcome:
    item = here.own_item()
    listener = relations.session_of_parent(here.u.c, item.id) or sessions.router(here.u.c)
    if listener is None:
        raise refused("there is no router to report to")
    notice = intake.Notice(
        kind="worker.report",
        channel=Channel.JOB,
        title=f"report of {item.id}",
        text=asked.text,
        actor=Actor(id=item.session, name="worker", kind=ActorKind.SYSTEM),
        trust=here.taint,
        dedupe=(f"report:{here.lease.session}:{here.call.id}",),
        facts=(("work", item.id),),
    )
    reported = intake.notify(here.u, listener, item.thread, notice)
    here.after.sessions.add(listener)
    return Done(body={"reported": reported}, volatile=frozenset({"reported"}))


# ------------------------------------------------------------------ done
@arguments(config=STRICT)
class EvidenceArguments:
    """Proof for one criterion: ids of jobs, triggers or effects of this item, or a commit."""

    criterion: str
    proof: str = Field(min_length=1, max_length=1000)
    claims: Claim = Field(default=Claim.SUCCEEDED, description="how what it names has ended")


@arguments(config=STRICT)
class CompleteArguments:
    """Evidence for every criterion."""

    evidence: list[EvidenceArguments] = Field(max_length=50)


def _complete(here: Here, asked: CompleteArguments) -> Outcome:
    given = tuple(Evidence(criterion=one.criterion, proof=one.proof) for one in asked.evidence)
    item = replace(here.own_item(), evidence=given)
    if runs := evidence.unfinished(here.u.c, item):
        raise refused("{}", runs)
    for one, claimed in zip(given, asked.evidence, strict=True):
        if wrong := evidence.wrong(here.u.c, item, one, claimed.claims):
            raise refused("{}", wrong)
    try:
        item = work.move(here.u, item, machine.EvidenceGiven())
    except InvalidError as error:
        raise refused("criteria without evidence: {}", error.data["missing"]) from error
    if item.mandate.acceptance:
        request = endings.ask_acceptance(here.u, item)
        body = {"state": item.state.value, "acceptance": request, "waiting": True}
        return Done(body=body, ends_turn=True)
    item = endings.completed(here.u, item)
    above = relations.session_of_parent(here.u.c, item.id)
    here.after.sessions.update([above] if above else [])
    return Done(body={"state": item.state.value}, ends_turn=True)


TOOLS: Final = (
    Tool(
        name="plan",
        description="Write down the plan, done and open steps; it is shown to people.",
        arguments=PlanArguments,
        run=_plan,
    ),
    Tool(
        name="wait",
        description="End the turn and wait: for news on the item's thread (CI, a review), for a "
        "job, for some seconds, or for a person. You are woken when it comes.",
        arguments=WaitArguments,
        run=_wait,
    ),
    Tool(
        name="ask",
        description="Ask a person, and wait for the answer.",
        arguments=AskArguments,
        run=_ask,
    ),
    Tool(
        name="report",
        description="Tell whoever asked for this work (the router, another worker) a key "
        "conclusion.",
        arguments=ReportArguments,
        run=_report,
    ),
    Tool(
        name="complete",
        description="Say that the goal is reached, with evidence for each criterion: the id of a "
        "job, a trigger or an effect of this item, or a commit. What it names must have ended as "
        "you claim, and nothing of yours may still run.",
        arguments=CompleteArguments,
        run=_complete,
    ),
)
