"""Timelines: what a sync tells of each room; where it tells only the end, the rest is read anew."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from upright.api import TriggerRejectedError
from upright_matrix.client import MatrixClient, path
from upright_matrix.events import MEMBER, read

TYPES: Final = (
    *("m.room.message", "m.reaction", "m.room.redaction", "m.room.encrypted", "m.room.member"),
    *("m.room.name", "m.room.canonical_alias", "m.room.power_levels", "m.room.encryption"),
)
TIMELINE: Final = 100  # Synapse gives no more, whatever is asked for
_NOBODY: Final = "@nobody:upright.invalid"


def sync_filter(*, limit: int = TIMELINE, mark: str = "") -> str:
    """Return what a sync is to tell.

    Synapse answers the same question within two minutes with the same answer, so that a start
    would be given an old token. A *mark* that is new each time makes it another question.
    """
    nobody = [f"@{mark}:upright.invalid"] if mark else [_NOBODY]
    timeline = {"limit": limit, "types": TYPES, "not_senders": nobody}
    room = {
        "timeline": timeline,
        "state": {"types": TYPES[4:]},
        "ephemeral": {"types": []},
        "account_data": {"types": []},
    }
    asked = {"presence": {"types": []}, "account_data": {"types": ["m.direct"]}, "room": room}
    return json.dumps(asked, separators=(",", ":"))


PAGE: Final = 500
BEFORE_JOIN: Final = timedelta(minutes=10)
"""Who invites us often speaks before we have joined; what is older than this is history."""

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What one sync told. ``joined`` maps rooms to (state, timeline, limited, prev_batch)."""

    next_batch: str
    joined: Mapping[str, Heard]
    invites: Mapping[str, Sequence[Raw]] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    direct: Raw | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What was heard of one room. ``prev_batch``: where that begins, when some is missing."""

    state: tuple[Raw, ...] = ()
    timeline: tuple[Raw, ...] = ()
    prev_batch: str = ""


def read_sync(value: Raw) -> Synced:
    """Read a sync's answer; what has another shape is left out."""
    rooms = _part(value, "rooms")
    account = [one for one in _events(value, "account_data") if one.get("type") == "m.direct"]
    return Synced(
        next_batch=str(value.get("next_batch") or ""),
        joined={room: _heard(_part(_part(rooms, "join"), room)) for room in _part(rooms, "join")},
        invites={
            room: _events(_part(_part(rooms, "invite"), room), "invite_state")
            for room in _part(rooms, "invite")
        },
        left=tuple(_part(rooms, "leave")),
        direct=_part(account[-1], "content") if account else None,
    )


def _heard(room: Raw) -> Heard:
    timeline = _part(room, "timeline")
    limited = timeline.get("limited") is True
    return Heard(
        state=_events(room, "state"),
        timeline=_events(room, "timeline"),
        prev_batch=str(timeline.get("prev_batch") or "") if limited else "",
    )


def _part(value: Raw, key: str) -> Raw:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _events(value: Raw, key: str) -> tuple[Raw, ...]:
    found = _part(value, key).get("events")
    return tuple(one for one in found if isinstance(one, dict)) if isinstance(found, list) else ()


class Gaps:
    """Reads what a limited timeline left out, back to the point that is known."""

    def __init__(self, client: MatrixClient, user_id: str, most: int) -> None:
        self._client = client
        self._me = user_id
        self._most = most

    async def whole(self, room: str, heard: Heard, since: str) -> tuple[tuple[Raw, ...], bool]:
        """Return a room's timeline since then, oldest first, and whether nothing is missing."""
        missing, filled = list[Raw](), True
        if heard.prev_batch and not any(self._enters(one) for one in heard.timeline):
            filled = await self._fill(room, heard.prev_batch, since, missing)
        events = self._ours((*reversed(missing), *heard.timeline))
        return events, filled

    async def _fill(self, room: str, at: str, since: str, missing: list[Raw]) -> bool:
        """Add what is missing, newest first."""
        types = json.dumps({"types": TYPES})
        query = {"dir": "b", "to": since, "limit": str(min(PAGE, self._most)), "filter": types}
        while at:
            answer = await self._client.get(path("rooms", room, "messages"), {**query, "from": at})
            page = answer.objects("chunk")
            if answer.status != 200 or (page and len(missing) >= self._most):
                return False
            missing += page
            if not page or any(self._enters(one) for one in page):
                return True
            at = answer.text("end")
        return True

    def _membership(self, event: Raw) -> tuple[str, str]:
        """Return what an event makes of our own membership, and what it was."""
        if event.get("type") != MEMBER or event.get("state_key") != self._me:
            return "", ""
        before = _part(_part(event, "unsigned"), "prev_content").get("membership")
        return str(_part(event, "content").get("membership")), str(before or "")

    def _enters(self, event: Raw) -> bool:
        """Tell whether our time in a room begins here: what is before is not ours."""
        now, before = self._membership(event)
        return now == "invite" or (now == "join" and before not in {"invite", "join"})

    def _ours(self, events: Sequence[Raw]) -> tuple[Raw, ...]:
        """Leave out what happened before we were there, but for words said while we joined."""
        kept = list[Raw]()
        for event in events:
            now, before = self._membership(event)
            if self._enters(event):
                kept.clear()
            elif now == "join" and before == "invite":
                kept = [one for one in kept if _soon_before(one, event)]
            kept.append(event)
        return tuple(kept)


def _soon_before(event: Raw, join: Raw) -> bool:
    try:
        return read(event).at >= read(join).at - BEFORE_JOIN
    except TriggerRejectedError:
        return False
