"""Recall as rows: whatever has an id, in the one shape that people and models read (B7.1).

A reader says what holds now: states, waits and receipts come from the rows that rule them, never
from what a transcript says of them. Only the texts of ended things stay what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import sqlalchemy as sa

from upright.core.context import trigger_body
from upright.core.ids import kind_of
from upright.core.mandate import Trust, taint
from upright.core.recall import Beside, Shown, one_line
from upright.core.retention import pruned_on
from upright.core.talk import Around
from upright.core.transcript import Message, Role, decode
from upright.core.wait import WaitState
from upright.store import (
    access,
    codec,
    conversation,
    graph,
    intake,
    jobs,
    memories,
    outbox,
    output,
    retention,
    secrecy,
    views,
    views_routing,
    waits,
    work,
)
from upright.store.errors import UnknownIdError
from upright.store.plain import one
from upright.store.tables import ENTRY, JOB, MEMORY, REQUEST, SESSION, THREAD, TRIGGER, WAIT

NEAR: Final = 2
MOST_OUTPUT: Final = 4 * 1024 * 1024
MOST_LISTED: Final = 2000
GENERATION: Final = "generation:"
SUMMARY: Final = "summary:"
_LOWEST: Final = sa.select(sa.func.min(ENTRY.c.taint)).where(
    ENTRY.c.session_id == sa.bindparam("session")
)

Reader = Callable[[sa.Connection, str, str], Shown]
"""``reader(connection, id, part)``; UnknownIdError when there is no such thing or part."""


def show(c: sa.Connection, wanted: str, part: str = "") -> Shown:
    """Show whatever has this id, with its relatives both ways.

    Raises:
        UnknownIdError: there is no such thing, it has no such part, or it can't be read.
    """
    kind = kind_of(wanted) or ""
    reader = READERS.get(kind)
    if reader is None:
        raise UnknownIdError(wanted)
    return reader(c, wanted, part)


def _known(c: sa.Connection, table: sa.Table, wanted: str) -> Mapping[str, Any]:
    return one(c, table, wanted)


def lowest(c: sa.Connection, session: str) -> Trust:
    """Return the least that a session was ever trusted: what it wrote may be of any time."""
    now = views_routing.taint_of(c, session)
    ever = c.scalar(_LOWEST, {"session": session})
    return now if ever is None else min(now, Trust(ever))


def _private(c: sa.Connection, kind: str, wanted: str) -> bool:
    thread = access.thread_of(c, kind, wanted)
    return thread is not None and secrecy.is_private(c, thread)


def _part(part: str, parts: tuple[str, ...], wanted: str) -> None:
    if part and part not in parts:
        named = f"{wanted} {part}"
        raise UnknownIdError(named)


# ------------------------------------------------------------------ what came
def _trigger(c: sa.Connection, wanted: str, part: str) -> Shown:
    stored = intake.read(c, wanted)
    if stored is None:
        raise UnknownIdError(wanted)
    content = stored.trigger.content
    body = trigger_body(stored, cap_bytes=0)
    for name in ("text", "left_out"):
        body.pop(name, None)
    pruned = retention.payload_pruned(c, stored.payload)
    facts = {"event": stored.trigger.kind, "channel": stored.trigger.channel.value, **body}
    text = content.full or content.text
    around = conversation.around(c, stored, NEAR, NEAR)
    _part(part, ("raw",), wanted)
    if part:
        text, facts = _raw(c, stored.payload), {}
    return Shown(
        id=stored.id,
        kind="trigger",
        summary=content.title or content.text,
        facts={**facts, **({"raw": pruned} if pruned else {})},
        relatives=graph.relatives(c, "trigger", stored.id),
        nearby=_beside(around),
        text=text,
        part=part,
        parts=() if pruned else ("raw",),
        fixed=True,
        trust=taint((stored.trust, around.trust)),
        private=_private(c, "trigger", stored.id),
        pruned=pruned,
    )


def _beside(around: Around) -> tuple[Beside, ...]:
    return tuple(
        Beside(
            id=near.trigger or near.message.id,
            by=near.message.author.name or near.message.author.id,
            text=near.message.text,
        )
        for near in (*around.before, *around.after)
    )


def _raw(c: sa.Connection, payload: str) -> str:
    """Return raw bytes as text; where they are a file of their own, people have them by the API."""
    raw = views.payload(c, payload)
    if raw.spilled:
        return f"[it is large, and a file of its own: GET /v1/payloads/{payload} has it]"
    return raw.pruned or raw.body.decode(errors="replace")


def _thread(c: sa.Connection, wanted: str, part: str) -> Shown:
    row = _known(c, THREAD, wanted)
    _part(part, (), wanted)
    mine = TRIGGER.c.thread_id == wanted
    chosen = sa.select(TRIGGER.c.id, TRIGGER.c.body_json, TRIGGER.c.received_at_ms).where(mine)
    newest = c.execute(chosen.order_by(TRIGGER.c.seq.desc()).limit(MOST_LISTED)).all()[::-1]
    least = c.scalar(sa.select(sa.func.min(TRIGGER.c.trust)).where(mine))
    return Shown(
        id=wanted,
        kind="thread",
        summary=row["title"],
        facts={"source": row["source"]},
        relatives=graph.relatives(c, "thread", wanted),
        text="\n".join(_line(one.id, one.body_json) for one in newest),
        trust=Trust.OPERATOR if least is None else Trust(least),
        private=secrecy.is_private(c, wanted),
    )


def _line(trigger: str, body: str) -> str:
    said = codec.load_trigger(body)
    by = said.actor.name or said.actor.id
    return f"{trigger} {said.kind} {one_line(by)}: {one_line(said.content.text)}"


# ------------------------------------------------------------------ who worked
def _session(c: sa.Connection, wanted: str, part: str) -> Shown:
    """Show a session: its present generation, or an earlier one's transcript or last words."""
    row = _known(c, SESSION, wanted)
    earlier = range(row["generation"])
    parts = tuple(f"{name}{n}" for n in earlier for name in (GENERATION, SUMMARY))
    _part(part, parts, wanted)
    number = int(part.partition(":")[2]) if part else row["generation"]
    chosen = sa.select(ENTRY.c.message_json, ENTRY.c.taint).where(
        ENTRY.c.session_id == wanted, ENTRY.c.generation == number
    )
    entries = c.execute(chosen.order_by(ENTRY.c.n)).all()
    told = [decode(entry.message_json) for entry in entries]
    if part.startswith(SUMMARY):
        text = "\n\n".join(m.text for m in told[-1:] if m.role is Role.ASSISTANT)
    else:
        text = "\n\n".join(_said(m) for m in told if m.role is not Role.SYSTEM)
    item = row["work_id"]
    facts: dict[str, Any] = {"status": views.session(c, wanted)["status"]}
    if item:
        outcome = views_routing.outcome(c, work.read(c, item))
        facts |= {key: outcome[key] for key in ("work", "goal", "state", "evidence")}
    return Shown(
        id=wanted,
        kind="session",
        summary=facts.get("goal", row["kind"]),
        facts={"session": wanted, **facts, "generation": number},
        relatives=graph.relatives(c, "session", wanted),
        text=text,
        part=part,
        parts=parts,
        fixed=bool(part) or row["ended_at_ms"] is not None,
        trust=taint(Trust(entry.taint) for entry in entries) if entries else lowest(c, wanted),
        private=row["private"] or _private(c, "session", wanted),
        pruned=pruned_on(row["pruned_at_ms"]),
    )


def _said(message: Message) -> str:
    calls = "".join(f"\n{call.name}({call.arguments})" for call in message.calls)
    return f"{message.role.value}: {message.text}{calls}"


def _work(c: sa.Connection, wanted: str, part: str) -> Shown:
    item = work.read(c, wanted)
    _part(part, (), wanted)
    live = [job for job in jobs.of_session(c, item.session) if not job.over]
    facts = {
        **views_routing.outcome(c, item),
        "plan": [{"text": step.text, "done": step.done} for step in item.plan],
        "waits": [
            {"id": wait.id, "for": wait.kind.value, "why": wait.why, "until_ms": wait.deadline_ms}
            for wait in waits.open_of(c, wanted)
        ],
        "running": [job.id for job in live],
    }
    return Shown(
        id=wanted,
        kind="work",
        summary=item.goal,
        facts={key: value for key, value in facts.items() if value or key != "running"},
        relatives=graph.relatives(c, "work", wanted),
        trust=lowest(c, item.session),
        private=_private(c, "work", wanted),
    )


def _job(c: sa.Connection, wanted: str, part: str) -> Shown:
    job = jobs.read(c, wanted)
    _part(part, ("stdout", "stderr"), wanted)
    facts = {} if part else output.result(c, job)
    text = ""
    if part and job.pruned_at_ms is None:
        _, raw = output.read(c, output.Stream(wanted, part), 0, MOST_OUTPUT)
        text = raw.decode(errors="replace")
    owner = c.scalar(sa.select(JOB.c.work_id).where(JOB.c.id == wanted))
    return Shown(
        id=wanted,
        kind="job",
        summary=f"{job.outcome or job.state.value} {'' if job.code is None else job.code}",
        facts=facts,
        relatives=graph.relatives(c, "job", wanted),
        text=text,
        part=part,
        parts=("stdout", "stderr"),
        fixed=job.over,
        trust=output.trust(work.read(c, str(owner))),
        private=_private(c, "job", wanted),
        pruned=pruned_on(job.pruned_at_ms),
    )


def _effect(c: sa.Connection, wanted: str, part: str) -> Shown:
    stored = outbox.read(c, wanted)
    _part(part, (), wanted)
    return Shown(
        id=wanted,
        kind="outbox",
        summary=f"{stored.item.state.value}: {stored.text}",
        facts={
            "effect": wanted,
            "state": stored.item.state.value,
            "reason": stored.item.reason,
            "receipt": stored.receipt_id,
            "url": stored.receipt_url,
        },
        relatives=graph.relatives(c, "outbox", wanted),
        text=stored.text,
        trust=lowest(c, stored.session),
        private=_private(c, "outbox", wanted),
    )


def _wait(c: sa.Connection, wanted: str, part: str) -> Shown:
    wait = waits.read(c, wanted)
    _part(part, (), wanted)
    of = _known(c, WAIT, wanted)
    return Shown(
        id=wanted,
        kind="wait",
        summary=f"{wait.state.value}: {wait.kind.value}: {wait.why}",
        facts={
            "state": wait.state.value,
            "open": wait.state is WaitState.OPEN,
            "for": wait.kind.value,
            "ref": wait.ref,
            "look_first": wait.look_first,
            "until_ms": wait.deadline_ms,
            "then": wait.on_deadline.value,
        },
        relatives=graph.relatives(c, "wait", wanted),
        text=wait.why,
        trust=lowest(c, work.read(c, of["work_id"]).session),
        private=_private(c, "wait", wanted),
    )


def _request(c: sa.Connection, wanted: str, part: str) -> Shown:
    row = _known(c, REQUEST, wanted)
    _part(part, (), wanted)
    asker = row["session_id"]
    return Shown(
        id=wanted,
        kind="request",
        summary=f"{row['state']}: {row['prompt']}",
        facts={"asks": row["kind"], "state": row["state"], "answer": row["answer"]},
        relatives=graph.relatives(c, "request", wanted),
        text=row["prompt"],
        trust=lowest(c, asker) if asker else Trust.STRANGER,
        private=_private(c, "request", wanted),
    )


def _memory(c: sa.Connection, wanted: str, part: str) -> Shown:
    entry = memories.read(c, wanted)
    _part(part, (), wanted)
    told = {**memories.shown(entry)}
    facts = {key: told[key] for key in ("about", "by", "times", "superseded_by") if told[key]}
    return Shown(
        id=wanted,
        kind="memory",
        summary=entry.text,
        facts=facts,
        relatives=graph.relatives(c, "memory", wanted),
        text=entry.text,
        fixed=True,
        trust=entry.trust,
        private=bool(_known(c, MEMORY, wanted).get("private")),
    )


READERS: Final[Mapping[str, Reader]] = {
    "trigger": _trigger,
    "thread": _thread,
    "session": _session,
    "work": _work,
    "wait": _wait,
    "job": _job,
    "outbox": _effect,
    "request": _request,
    "memory": _memory,
}
"""Each kind of thing that can be read; a new one brings its reader here."""
