"""Recall: read by id what is stored, as far as the mandate goes (B7.4, B7.6)."""

from __future__ import annotations

from typing import Final

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.core.context import trigger_body
from upright.core.ids import kind_of
from upright.core.transcript import Message
from upright.store import (
    intake,
    jobs,
    outbox,
    output,
    proofs,
    retention,
    sessions,
    succession,
    views_routing,
    work,
)
from upright.store.errors import UnknownIdError

READ_CHARS: Final = 16_000
MAX_BEFORE: Final = 20
"""How many items back a session may be that is read."""


@arguments(config=STRICT)
class ReadArguments:
    """An id, and from which character on."""

    id: str
    offset: int = Field(default=0, ge=0)


def _read(here: Here, asked: ReadArguments) -> Outcome:
    readers = {"trigger": _trigger, "job": _job, "outbox": _effect}
    kind = kind_of(asked.id) or ""
    if kind == "session":
        return _session(here, asked)
    reader = readers.get(kind)
    if kind == "work":
        return _work(here, asked)
    if reader is None:
        raise refused("{!r} is not the id of a trigger, a job, an effect or a session", asked.id)
    if not proofs.belongs(here.u.c, here.lease.session, asked.id):
        raise refused("there is no {} that you may read", asked.id)
    return reader(here, asked)


def _trigger(here: Here, asked: ReadArguments) -> Done:
    stored = intake.read(here.u.c, asked.id)
    if stored is None:
        raise refused("there is no {}", asked.id)
    body = trigger_body(stored, cap_bytes=0)
    text = stored.trigger.content.full or stored.trigger.content.text
    body["text"] = text[asked.offset : asked.offset + READ_CHARS]
    end = asked.offset + len(body["text"])
    body |= {"id": stored.id, "kind": stored.trigger.kind, "trust": stored.trust.label}
    if end < len(text):
        body["read_on_at"] = end
    if pruned := retention.payload_pruned(here.u.c, stored.payload):
        body["raw"] = pruned
    return Done(body=body)


def _job(here: Here, asked: ReadArguments) -> Done:
    return Done(body=output.result(here.u.c, jobs.read(here.u.c, asked.id)))


def _effect(here: Here, asked: ReadArguments) -> Done:
    stored = outbox.read(here.u.c, asked.id)
    body = {
        "effect": stored.id,
        "state": stored.item.state.value,
        "reason": stored.item.reason,
        "receipt": stored.receipt_id,
        "url": stored.receipt_url,
        "text": stored.text[asked.offset : asked.offset + READ_CHARS],
    }
    return Done(body=body)


def _work(here: Here, asked: ReadArguments) -> Done:
    """Read what came of an item and where it can be seen: the router alone sees across items.

    What a worker wrote is as far trusted as what it had read (B14.2).
    """
    if here.item is not None:
        raise refused("there is no {} that you may read", asked.id)
    try:
        item = work.read(here.u.c, asked.id)
    except UnknownIdError as error:
        raise refused("there is no {}", asked.id) from error
    read = views_routing.taint_of(here.u.c, item.session)
    return Done(body=views_routing.outcome(here.u.c, item), taints=read)


def _session(here: Here, asked: ReadArguments) -> Done:
    """Read the session of the item that this one follows, or of one before that (B6.6).

    It can't taint anew: a successor begins with the taint of the one before.
    """
    item = here.item
    before = succession.follows(here.u.c, item.id) if item else None
    for _ in range(MAX_BEFORE):
        if before is None or before.session == asked.id:
            break
        before = succession.follows(here.u.c, before.work)
    if before is None or before.session != asked.id:
        raise refused("there is no {} that you may read", asked.id)
    then = work.read(here.u.c, before.work)
    said = "\n\n".join(_said(m) for m in sessions.load(here.u.c, asked.id).messages[1:])
    end = asked.offset + READ_CHARS
    body: dict[str, object] = {
        "session": asked.id,
        "work": then.id,
        "goal": then.goal,
        "state": then.state.value,
        "evidence": [f"{one.criterion}: {one.proof}" for one in then.evidence],
        "total": len(said),
        "text": said[asked.offset : end],
    }
    if end < len(said):
        body["read_on_at"] = end
    return Done(body=body)


def _said(message: Message) -> str:
    calls = "".join(f"\n{call.name}({call.arguments})" for call in message.calls)
    return f"{message.role.value}: {message.text}{calls}"


READ: Final = Tool(
    name="read",
    description="Read a trigger, a job or an effect by its id; or the session that an item before "
    "yours had, by the id on your card. The router reads items: what came of them, with links.",
    arguments=ReadArguments,
    run=_read,
)
