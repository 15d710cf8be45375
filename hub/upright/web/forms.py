"""Forms: the named schemas of the API, one for each kind of thing that it shows."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from upright.core.job import JobState
from upright.core.outbox import OutboxState
from upright.core.request import RequestKind, RequestState
from upright.core.trigger import Disposition
from upright.core.wait import WaitState
from upright.core.work import WorkState
from upright.web.schemas import (
    ANY,
    NUMBER,
    TEXT,
    TIME,
    TRUST,
    TRUTH,
    WHOLE,
    Schema,
    array,
    maybe,
    ref,
    row,
    thing,
)


def one_of(words: type[StrEnum]) -> Schema:
    """Return the schema of an enum's words."""
    return {**TEXT, "enum": [each.value for each in words]}


DISPOSITION: Final = one_of(Disposition)
_COSTS: Final = thing(
    calls=WHOLE,
    tokens_input=WHOLE,
    tokens_cached=WHOLE,
    tokens_output=WHOLE,
    usd_micros=maybe(WHOLE),
    unpriced=WHOLE,
    seconds=NUMBER,
)
_WAIT: Final = thing(
    id=TEXT,
    work_id=TEXT,
    state=one_of(WaitState),
    kind=TEXT,
    ref=TEXT,
    why=TEXT,
    look_first=TEXT,
    since_ms=TIME,
    until_ms=TIME,
    then=TEXT,
)
_STATE: Final = one_of(WorkState)
_WORK_LISTED: Final = row(
    "work",
    without=("mandate_json", "evidence_json", "plan_json", "destination_json", "state"),
    state=_STATE,
    thread_title=maybe(TEXT),
    waits=array(ref("Wait")),
    questions=array(ref("Request")),
)
_DELIVERY: Final = thing(
    session_id=TEXT,
    session_kind=maybe(TEXT),
    work_id=maybe(TEXT),
    wake=TRUTH,
    folded=TRUTH,
    strategy=TEXT,
    taken_n=maybe(WHOLE),
    turn_id=maybe(TEXT),
    taken_at_ms=maybe(TIME),
)
_MESSAGE: Final = thing(role=TEXT, text=TEXT, calls=array(ANY), call_id=TEXT)
_PAIRING: Final = thing(
    request=TEXT,
    code=TEXT,
    digits=TEXT,
    bound_hash=TEXT,
    host=TEXT,
    remote=TEXT,
    caps=array(TEXT),
    hostname=TEXT,
    system=TEXT,
    user=TEXT,
    version=TEXT,
    expires_in_s=WHOLE,
)
_NEIGHBOUR: Final = thing(by=TEXT, trust=TRUST, text=TEXT)
_REQUEST: Final = row(
    "request",
    without=("kind", "state", "taint_json"),
    kind=one_of(RequestKind),
    state=one_of(RequestState),
)
_EFFECT_SHOWN: Final = thing(
    **{"class": TEXT},
    id=TEXT,
    destination=ANY,
    text=TEXT,
    digest=TEXT,
    state=TEXT,
    edits=array(ANY),
)

NAMED: Final[Mapping[str, Schema]] = {
    "Costs": _COSTS,
    "Delivery": _DELIVERY,
    "Device": row(
        "device",
        without=("public_key", "helper_json"),
        workspaces=array(row("workspace", repositories=array(TEXT))),
        shared_with=array(TEXT),
        queued=WHOLE,
        under_way=WHOLE,
        online=TRUTH,
    ),
    "Effect": row("outbox", without=("state",), state=one_of(OutboxState)),
    "Entry": row("entry", without=("message_json",), message=_MESSAGE),
    "Event": row("event", without=("xact",)),
    "Inbox": row(
        "trigger",
        without=("body_json", "disposition"),
        disposition=DISPOSITION,
        title=TEXT,
        thread_title=maybe(TEXT),
        actor_name=TEXT,
        work_id=maybe(TEXT),
        work_state=maybe(TEXT),
        deliveries=WHOLE,
        costs=ref("Costs"),
    ),
    "Job": row("job", without=("state",), state=one_of(JobState)),
    "Neighbours": thing(
        trigger=TEXT,
        role=TEXT,
        trust=TRUST,
        told_by={**TEXT, "enum": ["service", "hub"]},
        whole=TRUTH,
        before=array(_NEIGHBOUR),
        after=array(_NEIGHBOUR),
    ),
    "Pairing": _PAIRING,
    "Request": _REQUEST,
    "RequestShown": {
        "allOf": [
            ref("Request"),
            thing(
                goal=maybe(TEXT),
                effect=maybe(_EFFECT_SHOWN),
                cause=array(thing(id=TEXT)),
                tainted_by=array(thing(id=TEXT)),
                asked_again=maybe(TEXT),
                can=array({**TEXT, "enum": ["approve", "edit", "deny", "answer", "ask-again"]}),
            ),
        ]
    },
    "Session": row("session", status=TEXT),
    "Source": row("source", alive_at_ms=maybe(TIME), gap=TEXT, dead=thing(count=WHOLE, last=TEXT)),
    "Spent": thing(
        since_ms=TIME,
        total=ref("Costs"),
        by_kind=array(ref("Costs")),
        by_model=array(ref("Costs")),
        by_work=array(ref("Costs")),
    ),
    "Thread": row("thread", keys=array(TEXT), sessions=array(TEXT)),
    "Trigger": row(
        "trigger",
        without=("disposition",),
        disposition=DISPOSITION,
        thread=ref("Thread"),
        deliveries=array(ref("Delivery")),
        payload=maybe(row("payload", without=("body",), raw=TEXT)),
        edited_by=array(TEXT),
        outbox=array(ref("Effect")),
    ),
    "Turn": row("turn", costs=ref("Costs")),
    "Wait": _WAIT,
    "Why": thing(
        trigger=row("trigger", without=("body_json",)),
        deliveries=array(ref("Delivery")),
        turns=array(ref("Turn")),
        jobs=array(ref("Job")),
        outbox=array(ref("Effect")),
        events=array(ref("Event")),
        costs=ref("Costs"),
    ),
    "Work": row(
        "work",
        without=("state",),
        state=_STATE,
        session=row("session"),
        waits=array(ref("Wait")),
        jobs=array(ref("Job")),
        outbox=array(ref("Effect")),
        questions=array(ref("Request")),
        relations=array(row("relation", item=TEXT, state=TEXT, goal=TEXT)),
        costs=ref("Costs"),
    ),
    "WorkListed": _WORK_LISTED,
}
"""By name, for ``ref``."""
