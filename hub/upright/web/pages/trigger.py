"""Trigger page: its path with times, why, what happens now, how to stop it, what it came as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiohttp import web

from upright.core.job import JobState
from upright.core.talk import told
from upright.core.wait import WaitState
from upright.core.work import TERMINAL, WorkState
from upright.store import conversation, intake, views, views_why, views_work
from upright.store.unit import Connection
from upright.web.pages.layout import back, newest, page, read
from upright.web.problems import PARTS
from upright.web.reads import whole_id

RAW_BYTES: Final = 64 * 1024
NEAR: Final = 3
_RUNNING: Final = frozenset(
    {JobState.QUEUED.value, JobState.RUNNING.value, JobState.STOPPING.value}
)
_ENDED: Final = frozenset(state.value for state in TERMINAL)


async def trigger(request: web.Request) -> web.Response:
    """Show one trigger whole."""
    wanted = await whole_id(request, "trigger")
    seq = await newest(request)
    facts: dict[str, Any] = await read(request, lambda c: _facts(c, wanted))
    facts["raw"] = await _raw(request, facts["it"])
    return page(request, "trigger.html", {"here": "inbox", "seq": seq, **facts})


def _facts(c: Connection, wanted: str) -> dict[str, Any]:
    it, path = views.trigger(c, wanted), views_why.why(c, wanted)
    works = [views_work.work(c, work) for work in _works(it, path)]
    stored = intake.read(c, wanted)
    near = None
    if stored is not None:
        near = told(conversation.around(c, stored, NEAR, NEAR), where=wanted)
    return {
        "it": it,
        "body": it["body"],
        "path": path,
        "near": near,
        "effects": _effects(path, works),
        "works": [_now(c, work) for work in works],
    }


def _works(it: Mapping[str, Any], path: Mapping[str, Any]) -> Sequence[str]:
    """Name the items that have to do with a trigger: the one it opened, those it was passed to."""
    named = [it["work_id"], *(row["work_id"] for row in path["deliveries"])]
    return [work for work in dict.fromkeys(named) if work]


def _effects(
    path: Mapping[str, Any], works: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """List what was sent: by the turns that took it, and by the items that work on it."""
    found = [*path["outbox"], *(effect for work in works for effect in work["outbox"])]
    return list({effect["id"]: effect for effect in found}.values())


def _now(c: Connection, work: Mapping[str, Any]) -> dict[str, Any]:
    """Say what an item does now."""
    session = views.session(c, work["session_id"])
    return {
        **work,
        "status": session["status"],
        "running": [job for job in work["jobs"] if job["state"] in _RUNNING],
        "waiting": [wait for wait in work["waits"] if wait["state"] == WaitState.OPEN.value],
        "over": work["state"] in _ENDED,
        "blocked": work["state"] == WorkState.BLOCKED.value,
    }


async def _raw(request: web.Request, it: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the beginning of what a trigger came as, as text; None when there is nothing."""
    if it["payload"] is None:
        return None
    media, body, pruned = await request.app[PARTS].keeper.raw(it["payload_id"])
    text = body[:RAW_BYTES].decode("utf-8", "replace")
    return {"media": media, "text": text, "more": len(body) > RAW_BYTES, "pruned": pruned}


# ------------------------------------------------------------------ what a person does here
async def cancel(request: web.Request) -> web.Response:
    """Cancel a work item and its children, and show its trigger again."""
    wanted = await whole_id(request, "work")
    opened: str = (await read(request, lambda c: views_work.work(c, wanted)))["trigger_id"]
    await request.app[PARTS].oversight.cancel_work(wanted)
    return back(f"/triggers/{opened}")


async def again(request: web.Request) -> web.Response:
    """Offer a held trigger to the router, and show it again."""
    wanted = await whole_id(request, "trigger")
    await request.app[PARTS].keeper.again(wanted)
    return back(f"/triggers/{wanted}")
