"""Spending: what a model call cost its turn, its item and everybody (B16.1); and that it came."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from upright.agent.state import Turn
from upright.core.budget import Used
from upright.core.transcript import Message, ToolCall
from upright.core.wait import WaitKind, Wake
from upright.engine.ports import ChatReply, Reckoned
from upright.store import waits
from upright.store.budgets import spend
from upright.store.events import About, record
from upright.store.holds import MODEL
from upright.store.ledger import CALLS, Cost
from upright.store.unit import Unit


def replied(
    u: Unit, turn: Turn, reply: ChatReply, *, beside: bool = False, kind: str = "model"
) -> None:
    """Charge a model call with its failed tries, and note it; *beside* the turn or in it.

    *kind* is its name in the ledger. Called before the reply is appended: its calls are compared
    with those that were made before. Whatever it was asked, the model has spoken: no wait for it
    stays open.
    """
    if turn.work is not None:
        waits.settle(u.c, turn.work, Wake(kind=WaitKind.SYSTEM, ref=MODEL))
    again = repeats(turn.messages, reply.calls)
    cost = Cost(
        kind=kind,
        session_id=turn.claim.session,
        work_id=turn.work,
        turn_id=turn.id,
        model=reply.model,
        tokens_input=reply.usage.input,
        tokens_cached=reply.usage.cached,
        tokens_output=reply.usage.output,
        usd_micros=reply.cost_usd_micros,
        seconds=reply.seconds,
        tries=reply.attempts,
        beside=beside,
        repeats=again,
    )
    spend(u, cost)
    if reply.wasted is not None:
        in_vain(u, turn, reply.wasted, tries=0)
    _count(u, turn, cost)
    about = About(session_id=turn.claim.session, work_id=turn.work, turn_id=turn.id)
    said = {
        "model": reply.model,
        "calls": [call.name for call in reply.calls],
        "first_byte_ms": u.now_ms - round(1000 * (reply.seconds - reply.first_byte_s)),
        "seconds": round(reply.seconds, 3),
        "attempts": reply.attempts,
    }
    record(u, "llm.replied", about, {**said, "beside": True} if beside else said)


def in_vain(u: Unit, turn: Turn, wasted: Reckoned, *, tries: int, kind: str = "retry") -> None:
    """Charge tries that gave nothing, as far as they went: a provider bills them all the same."""
    cost = Cost(
        kind=kind,
        session_id=turn.claim.session,
        work_id=turn.work,
        turn_id=turn.id,
        model=wasted.model,
        tokens_input=wasted.usage.input,
        tokens_output=wasted.usage.output,
        usd_micros=wasted.cost_usd_micros,
        tries=tries,
    )
    spend(u, cost)
    _count(u, turn, cost)


def _count(u: Unit, turn: Turn, cost: Cost) -> None:
    """Add to what this turn has used; it has taken the time since it began."""
    is_call = cost.kind in CALLS
    more = Used(
        tokens=cost.tokens_input + cost.tokens_output,
        usd_micros=cost.usd_micros or 0,
        steps=int(is_call),
        retries=max(cost.tries - is_call, 0),
        repeats=cost.repeats,
        unpriced=int(is_call and cost.usd_micros is None),
    )
    turn.used = replace(turn.used.plus(more), millis=u.now_ms - turn.began_ms)


def repeats(messages: Iterable[Message], calls: Iterable[ToolCall]) -> int:
    """Count those of *calls* that were made before, word for word."""
    made = {(call.name, call.arguments) for message in messages for call in message.calls}
    return sum((call.name, call.arguments) in made for call in calls)
