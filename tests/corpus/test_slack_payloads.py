"""Slack's payloads: no exception leaves; the cases written by hand are exactly as they say."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from fixtures.connector import MemoryContext
from fixtures.slack import accepted, memory, request, sandbox, started
from upright.api import Trigger, TriggerRejectedError

DATA: Final = Path(__file__).parents[3] / "shared" / "data"
ABSENT: Final = "corpus: ../shared/data is not there"
MADE: Final = sorted((DATA / "made").glob("slack-*.expected.json"))
FILLED: Final = {
    **dict.fromkeys(("channel", "channel_id"), "C0FILLED01"),
    **dict.fromkeys(("ts", "event_ts", "deleted_ts"), "1780504800.000100"),
}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=ABSENT)


def paths(folder: str) -> list[Path]:
    found = sorted((DATA / "slack" / folder).rglob("*.json"))
    assert found
    return found


def filled(value: object, key: str = "") -> object:
    """Put plausible values where upstream has left the texts empty."""
    match value:
        case dict():
            return {name: filled(one, name) for name, one in value.items()}
        case list():
            return [filled(one) for one in value]
        case "":
            return FILLED.get(key, "")
        case _:
            return value


@pytest.mark.parametrize("fill", ["as it is", "filled"])
async def test_every_event_is_read_or_refused(fill: str) -> None:
    context, told = memory(), Counter[str]()
    async with sandbox(context) as at, started(at, context, http=True) as connector:
        for path in paths("events"):
            payload = json.loads(path.read_bytes()) | {"type": "event_callback"}
            body = json.dumps(filled(payload) if fill == "filled" else payload).encode()
            try:
                made = await connector.receive(request(at.courier.signed(body), body))
            except TriggerRejectedError:
                told["refused"] += 1
            else:
                told[made[0].kind if made else "nothing"] += 1
    assert sum(told.values()) == len(paths("events"))
    if fill == "filled":
        assert told["refused"] == 0
        assert told["message.created"] == 2


@pytest.mark.parametrize("folder", ["api", "app-backend"])
async def test_what_is_no_event_tells_nothing(folder: str) -> None:
    context = memory()
    async with sandbox(context) as at, started(at, context, http=True) as connector:
        for path in paths(folder):
            body = path.read_bytes()
            assert await connector.receive(request(at.courier.signed(body), body)) == ()


@pytest.mark.parametrize("case", MADE, ids=[one.name.partition(".")[0] for one in MADE])
async def test_the_cases_written_by_hand_are_exactly_as_they_say(case: Path) -> None:
    whole = loaded(case)
    context = memory()
    context.secrets["env:S"] = whole["setup"]["signature_text"]
    told = await delivered(whole, context, case.parent)
    wanted = {str(one["from"][0]): one for one in whole["expected"]["triggers"]}
    assert told.keys() == wanted.keys()
    for number, one in wanted.items():
        same(told[number], one)


def loaded(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


async def delivered(
    whole: dict[str, Any], context: MemoryContext, folder: Path
) -> dict[str, Trigger]:
    """Deliver what a case says, when it says; return what was new, by the delivery's number."""
    bot, told = whole["setup"]["bot_identity"], dict[str, Trigger]()
    bodies = {one["n"]: (folder / one["file"]).read_bytes() for one in whole["deliveries"]}
    async with sandbox(context, team="T0MADE001", bot_user=bot["user_id"]) as at:
        at.world.bot = bot["bot_id"]
        async with started(at, context, http=True) as connector:
            for one in whole["deliveries"]:
                context.at = datetime.fromisoformat(one["at"])
                before = len(accepted(context))
                asked = request(one["headers"], bodies[one["n"]])
                await context.emit(await connector.receive(asked))
                told |= {str(one["n"]): new for new in accepted(context)[before:]}
    return told


def same(told: Trigger, wanted: dict[str, Any]) -> None:
    """Compare; who is an operator or a member is intake's to know, by the actor's id."""
    assert (told.channel.value, told.kind) == (wanted["channel"], wanted["kind"])
    assert (told.actor.id, told.context.address.value) == (wanted["actor"]["id"], wanted["address"])
    key = wanted["thread_key"]
    assert told.context.thread == f"slack:{key['team']}/{key['channel']}/{key['root_ts']}"
    assert f"event:{wanted['dedupe_key']['event_id']}" in told.dedupe
    edit = wanted["edit_of"]
    assert told.context.edit_of == (f"{edit['channel']}:{edit['ts']}" if edit else "")
    assert told.content.text.strip() == wanted.get("text", told.content.text.strip())
    assert all(part in told.content.text for part in wanted.get("text_must_contain", ()))
    assert told.occurred_at == datetime.fromisoformat(wanted["occurred_at"])
