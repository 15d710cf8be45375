"""Cut: the step under way ends at once, since something urgent came (B9.3).

A half-thought is dropped and charged as far as it went; calls are answered with what is true of
them; what the step wanted to send, and has not sent yet, stays here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from upright.agent.state import Turn
from upright.agent.steps import about, about_trigger, answer_jobs, append, take_inbox
from upright.agent.tools.base import After, Done
from upright.core.outbox import OutboxState
from upright.core.transcript import Message, Role, ToolCall
from upright.engine.ports import Reckoned
from upright.store import jobs, outbox, sessions, strategy
from upright.store.budgets import spend
from upright.store.events import record
from upright.store.ledger import Cost
from upright.store.unit import Unit

REPLY: Final = "reply"
_NEVER_MADE: Final = {
    "outcome": "cancelled",
    "started": "no",
    "note": "something urgent came first",
}


def thought(u: Unit, turn: Turn, used: Reckoned, seconds: float) -> None:
    """Drop a half-thought: charge what it is reckoned to have used, and take the inbox at once."""
    sessions.check(u.c, turn.claim)
    cost = Cost(
        kind="model",
        session_id=turn.claim.session,
        work_id=turn.work,
        turn_id=turn.id,
        model=used.model,
        tokens_input=used.usage.input,
        tokens_output=used.usage.output,
        usd_micros=used.cost_usd_micros,
        seconds=seconds,
        tries=1,
    )
    spend(u, cost)
    for trigger in strategy.pressing(u.c, turn.claim.session).urgent:
        cut = about_trigger(turn, trigger)
        told = {"model": used.model, "seconds": round(seconds, 3)}
        record(u, "llm.cut", cut, {**told, "tokens_output": used.usage.output})
    take_inbox(u, turn)


def calls(u: Unit, turn: Turn, cut: Sequence[ToolCall]) -> After:
    """Answer open calls: ask what runs to stop, say of the rest that it never began (B8.3)."""
    after = After()
    sessions.check(u.c, turn.claim)
    _keep_back(u, turn, after)
    for call in cut:
        if call.id in turn.jobs:
            job = jobs.read(u.c, turn.jobs[call.id])
            if not job.background and jobs.stop(u, job):
                after.devices.add(job.device)
            answer_jobs(u, turn, [call.id])
        else:
            done = Done(body=_NEVER_MADE)
            append(u, turn, Message(role=Role.TOOL, text=done.text, call_id=call.id), done=done)
    record(u, "turn.cut_short", about(turn), {"calls": [call.id for call in cut]})
    return after


def _keep_back(u: Unit, turn: Turn, after: After) -> None:
    """Discard what the interrupted step wanted to send and nobody has begun to send.

    The session is told, as of any effect that did not go out, and may send it anew.
    """
    for effect in _effects(turn.messages):
        item = outbox.read(u.c, effect).item
        if item.state is OutboxState.PENDING and not item.may_be_visible:
            outbox.discard(u, effect, "interrupted before it was sent")
            after.sessions.add(turn.claim.session)


def _effects(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the effects that the replies of the last step name in their answers."""
    asked = next(message for message in reversed(messages) if message.role is Role.ASSISTANT)
    replies = {call.id for call in asked.calls if call.name == REPLY}
    for message in messages:
        if message.call_id in replies:
            effect = json.loads(message.text).get("effect")
            if isinstance(effect, str):
                yield effect
