"""Steps: the units of work of a turn; each appends to the transcript and commits (B8)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from upright.agent import briefing, card, spending, toolbox
from upright.agent.homes.part import home_part
from upright.agent.prompts.notices import CUT, NUDGE
from upright.agent.prompts.system import SYSTEM
from upright.agent.state import Turn
from upright.agent.tools import files
from upright.agent.tools.base import After, Done, Here, Started, ToolRefusedError, refusal
from upright.agent.tools.commands import VOLATILE
from upright.core import compaction
from upright.core.agenda import Agenda
from upright.core.context import batch
from upright.core.errors import CoreError
from upright.core.ids import JobId
from upright.core.job import TERMINAL as OVER
from upright.core.mandate import Trust, taint
from upright.core.talk import Around
from upright.core.transcript import Message, Role, ToolCall, ToolSpec, unanswered
from upright.core.trigger import StoredTrigger
from upright.core.turn import Action, Compact, Limits, TakeInbox, View, next_action
from upright.core.work import TERMINAL, WorkItem, WorkState
from upright.engine.ports import ChatReply, ChatRequest
from upright.store import (
    intake,
    jobs,
    matching,
    output,
    secrecy,
    sessions,
    strategy,
    taints,
    turns,
    waits,
    work,
)
from upright.store.events import About, record
from upright.store.sessions import Answer, Claim, Line
from upright.store.strategy import Pressing
from upright.store.unit import Connection, Unit

CHARS_A_TOKEN = 4


def begin(u: Unit, claim: Claim) -> Turn:
    """Begin a turn: load the session, wake its item; a new session gets its system message."""
    turn_id = turns.begin(u, claim)
    turn = Turn.of(turn_id, claim, sessions.load(u.c, claim.session))
    turn.began_ms = u.now_ms
    record(u, "engine.claimed", about(turn), {"epoch": claim.epoch})
    if not turn.messages:
        append(u, turn, system(u, turn))
    if turn.work is not None:
        work.woken(u, work.read(u.c, turn.work))
    return turn


def open_turn(
    u: Unit, claim: Claim, limits: Limits, bounds: compaction.ContextBounds
) -> tuple[Turn, Action]:
    """Begin a turn and take what has come, in one commit; return what is to be done first.

    A question that a dead hub's side step did not answer is taken like any other trigger. Where
    the transcript has grown too long it is compacted first, and what has come stays where it is.
    """
    turn = begin(u, claim)
    pressing = strategy.pressing(u.c, claim.session)
    turn.declined = frozenset(pressing.questions)
    action = next_action(_view(u.c, turn, pressing), limits)
    if isinstance(action, TakeInbox) and not pressing.urgent and is_long(turn, bounds):
        return turn, Compact()
    if isinstance(action, TakeInbox):
        _take(u, turn, pressing)
        pressing = strategy.pressing(u.c, claim.session)
        action = next_action(_view(u.c, turn, pressing), limits)
    return turn, action


def is_long(turn: Turn, bounds: compaction.ContextBounds) -> bool:
    """Say whether the transcript is to begin anew."""
    return compaction.due(turn.messages, turn.prompt_tokens, bounds.of(turn.kind))


def about(turn: Turn) -> About:
    """What an event of this turn is about."""
    return About(session_id=turn.claim.session, work_id=turn.work, turn_id=turn.id)


def about_trigger(turn: Turn, trigger: str) -> About:
    """Return what an event of this turn is about that speaks of one trigger."""
    return replace(about(turn), trigger_id=trigger)


def append(u: Unit, turn: Turn, message: Message, *, done: Done | None = None) -> int:
    """Append a message to the rows and to the turn, whose taint already counts it."""
    answer = Answer(
        call_id=message.call_id,
        digest=done.digest if done else "",
        ends_turn=done.ends_turn if done else False,
    )
    line = Line(
        turn=turn.id,
        message=message,
        digest=answer.digest,
        ends_turn=answer.ends_turn,
        taint=turn.taint,
    )
    number = sessions.append(u, turn.claim, line)
    turn.messages.append(message)
    if message.call_id:
        turn.answers[message.call_id] = answer
    return number


def system(u: Unit, turn: Turn) -> Message:
    """Return what a generation of this turn's agent begins with: its home as it is now."""
    return Message(role=Role.SYSTEM, text=f"{SYSTEM[turn.kind]}{home_part(u, turn.claim)}")


def tools(turn: Turn) -> tuple[ToolSpec, ...]:
    """Return the tools of this turn's agent."""
    return toolbox.specs(turn.kind)


def request(turn: Turn, messages: Sequence[Message]) -> ChatRequest:
    """Make a request of the turn's conversation."""
    return ChatRequest(
        role=turn.kind,
        session=compaction.prompt_key(turn.claim.session, turn.generation),
        messages=tuple(messages),
        tools=tools(turn),
    )


# ------------------------------------------------------------------ what is next
def look(c: Connection, turn: Turn) -> View:
    """Read what the next decision needs."""
    sessions.check(c, turn.claim)
    return _view(c, turn, strategy.pressing(c, turn.claim.session))


def _view(c: Connection, turn: Turn, pressing: Pressing) -> View:
    item = work.read(c, turn.work) if turn.work else None
    mine = jobs.briefs(c, turn.claim.session)
    open_calls = {call.id for call in unanswered(turn.messages)}
    beside = len([one for one in pressing.questions if one not in turn.declined])
    came = sessions.inbox(c, turn.claim.session)
    # a turn that begins takes all that wakes; one that runs is not prolonged by what was folded,
    # and what a side step answers is no reason for either
    due = (came.waking if turn.steps == 0 else came.due) - beside
    turn.jobs = {job.call_id: job.id for job in mine if job.call_id in open_calls}
    return View(
        messages=tuple(turn.messages),
        inbox=came.waiting if due else 0,
        folded=came.waiting if came.waking > beside else 0,
        steps=turn.steps,
        used=turn.used,
        nudges=turn.nudges,
        settled=_settled(c, item, is_busy=any(job.state not in OVER for job in mine)),
        started=dict.fromkeys(turn.jobs, True),
        results={key: answer.digest for key, answer in turn.answers.items()},
        ending=frozenset(key for key, answer in turn.answers.items() if answer.ends_turn),
        over=item is not None and item.state in TERMINAL,
        urgent=bool(pressing.urgent),
        beside=beside,
        asides=len(pressing.asides),
    )


def _settled(c: Connection, item: WorkItem | None, *, is_busy: bool) -> bool:
    """Say whether the session may rest: something will wake it, or nothing is left to do."""
    if item is None or item.state is not WorkState.RUNNABLE:
        return True
    return is_busy or bool(waits.open_of(c, item.id))


# ------------------------------------------------------------------ the inbox
def take_inbox(u: Unit, turn: Turn) -> None:
    """Append what has come as one batch; that is its acknowledgement, in the same commit (B8.4).

    Oldest first, and what is urgent last; what a side step still answers stays.
    """
    _take(u, turn, strategy.pressing(u.c, turn.claim.session))


def _take(u: Unit, turn: Turn, pressing: Pressing) -> None:
    triggers = _to_take(u.c, turn, pressing)
    is_router = turn.kind == "router"
    text = briefing.for_router(u, about(turn), triggers) if is_router else batch(triggers)
    if pressing.urgent:
        text = f"{CUT}\n\n{text}"
    if turn.work is not None and not turn.carded:
        text = f"{card.render(u, work.read(u.c, turn.work), triggers)}\n\n{text}"
        turn.carded = True
    turn.taint = taint((turn.taint, *(trigger.trust for trigger in triggers)))
    number = append(u, turn, Message(role=Role.USER, text=text))
    intake.taken(u.c, turn.claim.session, triggers, number)
    turn.nudges = 0
    told = {"private": True} if secrecy.tells_private(u.c, triggers) else {}
    sessions.update(u.c, turn.claim, taint=int(turn.taint), nudges=0, **told)
    _took(u, turn, triggers, number)
    if turn.work is not None:
        work.woken(u, work.read(u.c, turn.work))


def _to_take(c: Connection, turn: Turn, pressing: Pressing) -> list[StoredTrigger]:
    """Return the batch in its order: what is urgent last."""
    beside, urgent = set(pressing.questions) - turn.declined, set(pressing.urgent)
    come = [one for one in intake.unread(c, turn.claim.session) if one.id not in beside]
    return sorted(come, key=lambda one: one.id in urgent)


def _took(u: Unit, turn: Turn, triggers: Sequence[StoredTrigger], number: int) -> None:
    """Note each trigger of a batch, and let it end the waits that it is news for."""
    for trigger in triggers:
        known = about_trigger(turn, trigger.id)
        record(u, "turn.took", known, {"entry": number, "kind": trigger.trigger.kind})
        if turn.work is not None and trigger.source != intake.HUB_SOURCE:
            matching.match_external(u, turn.work, trigger)


def nudge(u: Unit, turn: Turn) -> None:
    """Tell the model that the item neither waits nor is done."""
    append(u, turn, Message(role=Role.USER, text=NUDGE))
    turn.nudges += 1
    sessions.update(u.c, turn.claim, nudges=turn.nudges)


# ------------------------------------------------------------------ the model
def replied(u: Unit, turn: Turn, reply: ChatReply) -> None:
    """Commit what the model said, before anything of it is done (B8.2); charge it."""
    spending.replied(u, turn, reply, beside=False)
    append(u, turn, Message(role=Role.ASSISTANT, text=reply.text, calls=reply.calls))
    turn.steps += 1
    turn.failures = 0
    turn.prompt_tokens = _tokens(turn, reply)
    sessions.update(u.c, turn.claim, failures=0, prompt_tokens=turn.prompt_tokens)


def _tokens(turn: Turn, reply: ChatReply) -> int:
    """Return how long the prompt is now; reckoned where an endpoint doesn't count."""
    counted = reply.usage.input + reply.usage.output
    return counted or sum(len(message.text) for message in turn.messages) // CHARS_A_TOKEN


# ------------------------------------------------------------------ tools
def run_call(u: Unit, turn: Turn, call: ToolCall, learned: Around | Agenda | None = None) -> After:
    """Run one call: its effects and its answer are one commit. A job is answered later."""
    after = After()
    here = Here(
        u=u,
        lease=turn.claim,
        turn=turn.id,
        call=call,
        item=work.read(u.c, turn.work) if turn.work else None,
        taint=turn.taint,
        after=after,
        talk=learned if isinstance(learned, Around) else None,
        agenda=learned if isinstance(learned, Agenda) else None,
    )
    sessions.check(u.c, turn.claim)
    outcome = _outcome(turn.kind, here)
    record(u, "tool.ran", about(turn), {"tool": call.name[:64], "call": call.id})
    match outcome:
        case Done():
            if outcome.taints <= turn.taint and outcome.taints < Trust.OPERATOR:
                taints.note(u, turn.claim.session, outcome.shows or call.name, outcome.taints)
            if outcome.taints < turn.taint:
                turn.taint = outcome.taints
                sessions.update(u.c, turn.claim, taint=int(turn.taint))
            if outcome.private:
                sessions.update(u.c, turn.claim, private=True)
            message = Message(role=Role.TOOL, text=outcome.text, call_id=call.id)
            append(u, turn, message, done=outcome)
        case Started():
            turn.jobs[call.id] = outcome.job
    return after


def _outcome(kind: str, here: Here) -> Done | Started:
    tool = toolbox.by_name(kind).get(here.call.name)
    if tool is None:
        names = ", ".join(toolbox.by_name(kind))
        return refusal(f"there is no tool {here.call.name!r}; there are {names}")
    if here.item is not None and here.item.state in TERMINAL:
        return refusal("the work item is over: nothing more is done for it")
    try:
        return here.u.attempt(lambda: tool(here))
    except (ToolRefusedError, CoreError) as error:
        return refusal(str(error))


# ------------------------------------------------------------------ jobs
def unfinished(c: Connection, ids: Sequence[JobId]) -> list[JobId]:
    """Return the jobs that a call still waits for; a background job is not waited for."""
    found = [jobs.read(c, job) for job in ids]
    return [job.id for job in found if not job.over and not job.background]


def answer_jobs(u: Unit, turn: Turn, calls: Sequence[str]) -> None:
    """Answer open calls: with the end of their jobs, or an honest placeholder (B8.3)."""
    if turn.work is not None:
        printed = output.trust(work.read(u.c, turn.work))
        if printed < turn.taint:
            taints.note(u, turn.claim.session, turn.jobs[calls[0]], printed)
        turn.taint = taint((turn.taint, printed))
    names = {call.id: call.name for call in unanswered(turn.messages)}
    for call_id in calls:
        job = jobs.read(u.c, turn.jobs[call_id])
        said = files.answer(u.c, job, names.get(call_id, "")) or output.result(u.c, job)
        if job.over and job.reported:  # it ended in the background: its trigger is in the inbox
            said = {"job": job.id, "outcome": "ended", "note": "a trigger job.finished tells how"}
        elif job.over:
            jobs.reported(u, job)
        else:
            jobs.into_background(u, job)
            said["note"] = "its end comes later, as a trigger job.finished"
        done = Done(body=said, volatile=VOLATILE)
        text = json.dumps(said, ensure_ascii=False)
        append(u, turn, Message(role=Role.TOOL, text=text, call_id=call_id), done=done)
    sessions.update(u.c, turn.claim, taint=int(turn.taint))
