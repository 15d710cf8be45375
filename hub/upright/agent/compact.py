"""Compact: a session's transcript begins a new generation, in one commit (B5.5, B8.1).

The model is asked once, with the prompt as it stands and a question behind it, so that its cache
is hit; the question and the answer close the old generation, where they can be read. Whatever
becomes of that call, the new generation has a card made by code. A kill before the commit leaves
everything as it was; after it nothing is left to be done.
"""

from __future__ import annotations

from datetime import UTC, datetime

from upright.agent import spending, steps
from upright.agent.prompts.notices import SUMMARISE
from upright.agent.state import Turn
from upright.core import compaction
from upright.core.compaction import Past, Pins
from upright.core.transcript import Message, Role
from upright.engine.ports import ChatReply, ChatRequest, Reckoned
from upright.store import pins, sessions, taints, work
from upright.store.events import record
from upright.store.unit import Connection, Unit

KIND = "compaction"
"""What such a call is in the ledger."""
_QUESTION = Message(role=Role.USER, text=SUMMARISE)


def request(turn: Turn) -> ChatRequest:
    """Ask for a summary of what leaves the context: not of what is still to be answered."""
    return steps.request(turn, (*_leaving(turn), _QUESTION))


def _leaving(turn: Turn) -> list[Message]:
    return turn.messages[: len(turn.messages) - len(compaction.tail(turn.messages))]


def begin_anew(u: Unit, turn: Turn, reply: ChatReply | None, why: str = "") -> None:
    """Close the generation and begin the next one; without a *reply* the card stands alone."""
    sessions.check(u.c, turn.claim)
    before, repeated = turn.taint, compaction.tail(turn.messages)
    past = Past(
        session=turn.claim.session,
        generation=turn.generation,
        taint=turn.taint,
        at=datetime.fromtimestamp(u.now_ms / 1000, UTC).isoformat(timespec="seconds"),
        is_one_thing=turn.work is not None,
        messages=tuple(turn.messages),
    )
    summary = reply.text.strip() if reply else ""
    if reply is not None:
        spending.replied(u, turn, reply, kind=KIND)
    made = compaction.fresh(past, _pins(u.c, turn), summary)
    if summary:
        steps.append(u, turn, _QUESTION)
        steps.append(u, turn, Message(role=Role.ASSISTANT, text=summary))
    if made.taint > before:
        taints.forget(u, turn.claim.session)
    else:
        taints.carry(u, turn.claim.session, made.taint)
    turn.generation, turn.taint, turn.prompt_tokens = turn.generation + 1, made.taint, 0
    turn.messages, turn.answers = [], {}
    clean = not made.inline and not repeated
    sessions.update(
        u.c,
        turn.claim,
        generation=turn.generation,
        taint=int(turn.taint),
        prompt_tokens=0,
        **({"private": False} if clean else {}),
    )
    steps.append(u, turn, steps.system(u, turn))
    for message in (Message(role=Role.USER, text=made.card), *repeated):
        steps.append(u, turn, message)
    told = {
        "generation": turn.generation,
        "summary": bool(summary),
        "inline": made.inline,
        "taint": [before.label, made.taint.label],
        "invented": len(made.invented),
        "why": why,
    }
    record(u, "session.compacted", steps.about(turn), told)


def _pins(c: Connection, turn: Turn) -> Pins:
    if turn.work is not None:
        return pins.of_worker(c, work.read(c, turn.work))
    return pins.of_router(c, turn.claim.session, turn.taint)


def cut(u: Unit, turn: Turn, used: Reckoned) -> None:
    """Charge a summary that something urgent cut off: the next turn compacts."""
    sessions.check(u.c, turn.claim)
    spending.in_vain(u, turn, used, tries=1, kind=KIND)
