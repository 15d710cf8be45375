"""Echo: what became visible is told to the others that follow its thread, at its receipt (B6.7).

The provider may show our own output to us as well, by a webhook or a listing, soon or late or
never: what it shows has the receipt's id, and is known as the trigger that is made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import sqlalchemy as sa

from upright.api import Actor, ActorKind, Content, Context, Destination, Receipt, Trigger
from upright.core import routing
from upright.core.gate import Judgement, Verdict
from upright.core.ids import TriggerId
from upright.core.mandate import Trust, trust_of
from upright.core.strategy import Strategy
from upright.core.trigger import Origin, StoredTrigger
from upright.store import arrivals, intake, threads
from upright.store.arrivals import NATIVE, Draft
from upright.store.events import About, record
from upright.store.tables import DELIVERY, SESSION
from upright.store.unit import Unit

KIND: Final = "reply.sent"
_TAINT: Final = sa.select(SESSION.c.taint).where(SESSION.c.id == sa.bindparam("session"))
_ADD: Final = DELIVERY.insert()


class Said(Protocol):
    """An effect that became visible: whose it is, what it says, and which trigger it answers."""

    @property
    def id(self) -> str:
        """Its own id."""
        ...

    @property
    def session(self) -> str:
        """Who said it."""
        ...

    @property
    def work(self) -> str | None:
        """For which item."""
        ...

    @property
    def trigger(self) -> str | None:
        """What it answers."""
        ...

    @property
    def destination(self) -> Destination:
        """Where it is."""
        ...

    @property
    def text(self) -> str:
        """What it says."""
        ...


def tell(u: Unit, said: Said, receipt: Receipt) -> TriggerId | None:
    """Store our output as a trigger of kind *self*: context without a wake for all but its author.

    Returns its id, or None when there is no trigger that it answers, or the provider was faster
    and has shown it already. What the hub itself says to people is told to no session: there is
    nothing in it that one has read, or must know.
    """
    if not said.session:
        return None
    answers = intake.read(u.c, said.trigger) if said.trigger else None
    if answers is None or arrivals.seen(u.c, said.destination.source, _keys(said, receipt)):
        return None
    draft = _draft(u, said, answers, receipt)
    everybody = threads.followers(u.c, answers.thread)
    others = tuple(session for session in everybody if session != said.session)
    way = routing.route(draft.judgement, draft.who, others, None)
    arrivals.insert(u, [(draft, way)])
    for delivery in way.deliveries:
        row = {"session_id": delivery.session, "trigger_id": draft.id, "wake": delivery.wake}
        u.c.execute(_ADD, {**row, "strategy": Strategy.QUEUE.value, "folded": False})
    about = About(trigger_id=draft.id, work_id=said.work, outbox_id=said.id)
    told = {"disposition": way.disposition, "reason": way.reason, "to": len(way.deliveries)}
    record(u, "intake.accepted", about, told)
    return draft.id


def _draft(u: Unit, said: Said, answers: StoredTrigger, receipt: Receipt) -> Draft:
    """Make the trigger; it is trusted no more than what its author had read."""
    actor = Actor(id=said.session, name="upright", kind=ActorKind.SELF)
    read = u.c.scalar(_TAINT, {"session": said.session})
    trust = min(trust_of(actor.kind), Trust(read) if read is not None else Trust.STRANGER)
    reason = f"{said.id} of {said.session}"
    return Draft(
        id=TriggerId(u.new_id("trigger")),
        payload=u.new_id("payload"),
        source=said.destination.source,
        trigger=_trigger(said, answers, actor, receipt),
        who=Origin(actor=actor, trust=trust, listed=False),
        judgement=Judgement(verdict=Verdict.IGNORE, rule="own output", reason=reason, version="-"),
        thread=answers.thread,
        keys=_keys(said, receipt),
    )


def _keys(said: Said, receipt: Receipt) -> tuple[str, ...]:
    """Return what it is known by: the effect, and each id under which the provider shows it."""
    return (f"effect:{said.id}", *(NATIVE + native for native in _parts(receipt)))


def _parts(receipt: Receipt) -> Sequence[str]:
    """Return the ids of a receipt; a text that was sent in parts has several."""
    return tuple(dict.fromkeys(filter(None, receipt.provider_id.split(","))))


def _trigger(said: Said, answers: StoredTrigger, actor: Actor, receipt: Receipt) -> Trigger:
    context = answers.trigger.context
    facts = {
        "effect": said.id,
        "work": said.work or "",
        "answers": answers.id,
        "native_id": next(iter(_parts(receipt)), ""),
        "url": receipt.url,
    }
    return Trigger(
        kind=KIND,
        channel=answers.trigger.channel,
        actor=actor,
        content=Content(title=answers.trigger.content.title, text=said.text),
        context=Context(
            thread=context.thread,
            reply_to=said.destination,
            links=tuple(filter(None, (receipt.url,))),
            facts=tuple((name, value) for name, value in facts.items() if value),
        ),
        dedupe=(f"effect:{said.id}",),
    )
