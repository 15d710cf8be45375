"""Replies: an effect on the item's own thread, once for each answer (B6.7, B15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.agent.tools.memory import routed
from upright.api import Destination, EffectClass
from upright.core.mandate import Decision, Mandate, decide
from upright.core.outbox import OutboxState
from upright.core.request import RequestKind
from upright.core.wait import WaitKind
from upright.core.work import WorkItem
from upright.store import access, answers, intake, outbox, proofs, requests, secrecy, waits


@arguments(config=STRICT)
class ReplyArguments:
    """What to say on the item's own thread, or to which trigger of another that it was given."""

    text: str = Field(min_length=1, max_length=60_000)
    trigger: str = Field(default="", description="which trigger this answers; your thread's newest")
    purpose: Literal["answer", "progress"] = "answer"


def _reply(here: Here, asked: ReplyArguments) -> Outcome:
    """Reply, once a trigger (B6.7); what a progress report says is no answer yet."""
    item = here.own_item()
    if asked.trigger:
        reply = _to_named(here, item, asked)
    elif item.destination is None:
        raise refused("this thread has no place to reply to; use report or ask")
    else:
        reply = _Reply(
            destination=item.destination,
            text=asked.text,
            mandate=item.mandate,
            trigger=answers.default_of(here.u.c, item),
            progress=asked.purpose == "progress",
        )
    return _send(here, reply)


def _to_named(here: Here, item: WorkItem, asked: ReplyArguments) -> _Reply:
    """Fix where the answer to a named trigger goes: where that one came from, nowhere else."""
    stored = intake.read(here.u.c, asked.trigger)
    if stored is None or not proofs.belongs(here.u.c, here.lease.session, asked.trigger):
        raise refused("{} is no trigger of yours", asked.trigger)
    own = stored.thread == item.thread
    destination = stored.trigger.context.reply_to or (item.destination if own else None)
    if destination is None:
        raise refused("{} has no place to reply to", asked.trigger)
    return _Reply(
        destination=destination,
        text=asked.text,
        mandate=item.mandate,
        trigger=stored.id,
        progress=asked.purpose == "progress",
        effect_class=EffectClass.REPLY if own else EffectClass.REACH,
    )


@arguments(config=STRICT)
class AnswerArguments:
    """What to say, and to which trigger."""

    trigger: str
    text: str = Field(min_length=1, max_length=60_000)


def _answer(here: Here, asked: AnswerArguments) -> Outcome:
    """Answer a trigger that the router was given."""
    stored = intake.read(here.u.c, asked.trigger)
    if stored is None or not intake.was_delivered(here.u.c, here.lease.session, asked.trigger):
        raise refused("{} is no trigger of yours", asked.trigger)
    destination = stored.trigger.context.reply_to
    if destination is None:
        raise refused("{} has no place to reply to", asked.trigger)
    mandate = Mandate(given_by=stored.trigger.actor.id, trust=stored.trust)
    reply = _Reply(destination=destination, text=asked.text, mandate=mandate, trigger=asked.trigger)
    outcome = _send(here, reply)
    routed(here, stored, "reply")
    return outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    destination: Destination
    text: str
    mandate: Mandate
    trigger: str
    progress: bool = False
    effect_class: EffectClass = EffectClass.REPLY


def _send(here: Here, reply: _Reply) -> Outcome:
    decision = decide(reply.mandate, here.taint, reply.effect_class)
    if decision is not Decision.DENY and not reply.progress:
        _once(here, reply.trigger)
    if decision is Decision.DENY:
        raise refused("the mandate doesn't allow a reply")
    held = decision is Decision.ASK or _tells(here, reply.trigger)
    progress = answers.PROGRESS if reply.progress else ""
    stored = outbox.put(
        here.u,
        outbox.Draft(
            session=here.lease.session,
            work=here.item.id if here.item else None,
            trigger=reply.trigger,
            effect_class=reply.effect_class,
            destination=reply.destination,
            text=reply.text,
            idempotency_key=f"{here.lease.session}:{here.call.id}{progress}",
            state=OutboxState.HELD if held else OutboxState.PENDING,
            life_ms=None if held else here.u.terms.life_ms(EffectClass.REPLY),
            turn=here.turn,
        ),
    )
    if held:
        return _ask_approval(here, stored)
    here.after.outbox = True
    body = {"effect": stored.id, "state": stored.item.state.value}
    return Done(body=body, volatile=frozenset({"effect"}))


def _tells(here: Here, trigger: str) -> bool:
    """Say whether what is private might be told in public: then a person looks first (B7.6)."""
    if not secrecy.holds_private(here.u.c, here.lease.session):
        return False
    thread = access.thread_of(here.u.c, "trigger", trigger)
    return thread is None or not secrecy.is_private(here.u.c, thread)


def _once(here: Here, trigger: str) -> None:
    """Refuse a second answer to one trigger, and say whose the first was (B6.7)."""
    first = answers.answered(here.u.c, trigger, here.lease.session, works=here.item is not None)
    if first is None:
        return
    if first.session == here.lease.session:
        raise refused(
            "you answered {} with {}, and nothing came since; purpose=progress is no answer",
            trigger,
            first.effect,
        )
    raise refused(
        "{} was answered already: {} by {}. Name another trigger, or leave it",
        trigger,
        first.effect,
        first.work or first.session,
    )


def _ask_approval(here: Here, stored: outbox.Stored) -> Done:
    """Hold the effect until a person approves exactly this (B14.3)."""
    prompt = (
        f"Send this reply? It was written after reading {here.taint.label} text.\n\n{stored.text}"
    )
    request = requests.ask(
        here.u,
        requests.Asking(
            prompt=prompt,
            work=stored.work,
            session=stored.session,
            kind=RequestKind.APPROVAL,
            outbox=stored.id,
            digest=stored.digest,
        ),
    )
    if stored.work is not None:
        why = f"approval of the reply {stored.id}"
        waits.register(
            here.u, stored.work, waits.Asked(kind=WaitKind.OPERATOR, ref=request, why=why)
        )
    here.after.timers = True
    body = {"effect": stored.id, "state": "held", "approval": request, "waiting": True}
    return Done(body=body, ends_turn=stored.work is not None)


WORKER: Final = Tool(
    name="reply",
    description="Post one reply on the item's own thread (a comment on its pull request).",
    arguments=ReplyArguments,
    run=_reply,
)
ROUTER: Final = Tool(
    name="reply",
    description="Answer one trigger where it came from.",
    arguments=AnswerArguments,
    run=_answer,
)
