"""The command line against a live hub that has done a whole story: JSON, exit codes, ids."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
import pytest_asyncio
from aiohttp import ClientSession, CookieJar

from fixtures.pulls import open_pull
from fixtures.spine import Spine, raised

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(60),  # the first one sets everything up, and lets a whole story happen
]
STOPS: Final = frozenset(
    {
        "gate.judged",
        "intake.accepted",
        "engine.claimed",
        "turn.took",
        "llm.replied",
        "tool.ran",
        "work.opened",
        "command.queued",
        "command.started",
        "command.ended",
        "effect.committed",
        "effect.settled",
        "turn.ended",
    }
)


@dataclass(frozen=True, kw_only=True)
class Told:
    """The spine after a story, and the ids of what came of it."""

    spine: Spine
    trigger: str
    work: str
    session: str
    job: str
    effect: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def told(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Told]:
    async with raised(tmp_path_factory.mktemp("spine")) as spine:
        pull = await open_pull(spine, 21)
        await pull.goes_red()
        await pull.comes_green()
        work = await pull.opened()
        why = await spine.hub.get(f"/v1/why/{work['id']}")
        yield Told(
            spine=spine,
            trigger=work["trigger_id"],
            work=work["id"],
            session=work["session_id"],
            job=why["jobs"][0]["id"],
            effect=why["outbox"][0]["id"],
        )


READS: Final = (
    "inbox",
    "inbox --why {trigger}",
    "show {trigger}",
    "show {work}",
    "show {session}",
    "show {job}",
    "show {effect}",
    "why {trigger}",
    "why {work}",
    "work ls",
    "work ls --all",
    "work show {work}",
    "session ls",
    "session show {session}",
    "requests ls",
    "requests ls --all",
    "device ls",
    "device pairings",
    "source ls",
    "cost",
)


@pytest.mark.parametrize("line", READS)
async def test_every_read_prints_one_json_value_and_no_more(told: Told, line: str) -> None:
    words = [word.format_map(_ids(told)) for word in line.split()]
    said = await told.spine.upright(*words, "--json")
    assert (said.code, said.err) == (0, "")
    assert isinstance(said.json(), list | dict)


def _ids(told: Told) -> dict[str, str]:
    names = ("trigger", "work", "session", "job", "effect")
    return {name: getattr(told, name) for name in names}


async def test_a_transcript_comes_as_one_json_value_a_line(told: Told) -> None:
    said = await told.spine.upright("session", "tail", told.session, "--entries", "5", "--json")
    assert said.code == 0
    assert len([json.loads(line) for line in said.out.splitlines()]) == 5


async def test_doctor_finds_nothing_to_set_right_beside_a_live_hub(told: Told) -> None:
    said = await told.spine.upright("doctor", "--json")
    found = said.json()["checks"]
    assert [one for one in found if one["verdict"] == "failed"] == []
    assert said.code == 0


async def test_a_unique_beginning_of_an_id_will_do(told: Told) -> None:
    whole = (await told.spine.upright("work", "show", told.work, "--json")).json()
    short = await told.spine.upright("work", "show", told.work[:-6], "--json")
    assert (short.code, short.json()["id"]) == (0, whole["id"])


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("work ls", 0, ""),
        ("frobnicate", 2, "No such command"),
        ("inbox --limit many", 2, "not a valid integer"),
        ("inbox --disposition gone", 2, "ignored, joined"),
        ("show tr_", 2, "tr_"),
        ("show tr_zzzz", 3, "tr_zzzz"),
        ("work show {trigger}", 3, "is a trigger, not a work"),
        ("device approve BBBB-BBBB --yes", 3, "No device waits under this code"),
        ("source retry nowhere", 4, "nowhere"),
        ("device revoke {trigger}", 3, "not a device"),
    ],
)
async def test_an_exit_code_says_how_it_ended_and_one_sentence_why(
    told: Told, line: str, code: int, words: str
) -> None:
    said = await told.spine.upright(*(word.format_map(_ids(told)) for word in line.split()))
    assert said.code == code
    assert words in said.err
    assert "Traceback" not in said.err


async def test_a_wrong_token_is_refused_and_no_hub_is_unreachable(told: Told) -> None:
    refused = await told.spine.run(["upright", "inbox"], UPRIGHT_TOKEN="wrong")
    assert refused.code == 4
    nobody = await told.spine.run(["upright", "inbox"], UPRIGHT_HUB="http://127.0.0.1:9")
    assert nobody.code == 5
    assert "upright up" in nobody.err


@pytest.mark.clause("B16.1")
async def test_why_names_every_stop_with_times_and_cost(told: Told) -> None:
    found: dict[str, Any] = (await told.spine.upright("why", told.trigger, "--json")).json()
    events = found["events"]
    assert {event["stop"] for event in events} >= STOPS
    times = [event["at_ms"] for event in events]
    assert times == sorted(times)
    assert found["costs"]["calls"] > 0
    shown = (await told.spine.upright("why", told.trigger)).out
    for stop in STOPS:
        assert stop in shown
    assert "turn of the router" in shown
    assert "turn of the worker" in shown
    assert "exited(0)" in shown
    assert shown.splitlines()[-1].startswith("cost: ")


async def test_what_somebody_says_is_theirs_in_the_rows_and_in_the_trail(told: Told) -> None:
    """Ann comes in by a link, makes a token, speaks by it, and is cut off: with real programs."""
    ran = told.spine.upright
    assert (await ran("people", "role", "ann", "operator")).code == 0
    link = (await ran("people", "link-in", "ann")).out.strip()
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        async with browser.get(link, allow_redirects=False) as entered:
            assert entered.status == 303
        base = link.partition("/sign-in")[0]
        async with browser.get(f"{base}/v1/me") as answered:
            csrf = {"X-CSRF-Token": (await answered.json())["csrf"]}
        body = {"name": "laptop", "scopes": "act", "days": "1"}
        async with browser.post(f"{base}/v1/tokens", json=body, headers=csrf) as made:
            token = (await made.json())["token"]
    router = next(
        one["id"] for one in await told.spine.hub.get("/v1/sessions") if one["kind"] == "router"
    )
    words = ("session", "say", router, "good morning", "--json")
    said = await told.spine.run(["upright", *words], UPRIGHT_TOKEN=token)
    assert said.code == 0, said.err
    trigger = await told.spine.hub.get(f"/v1/triggers/{json.loads(said.out)['trigger']}")
    assert trigger["actor_id"] == "ann"
    refused = await told.spine.run(["upright", "audit"], UPRIGHT_TOKEN=token)
    assert refused.code == 4
    assert (await ran("people", "revoke", "ann")).code == 0
    gone = await told.spine.run(["upright", "inbox"], UPRIGHT_TOKEN=token)
    assert gone.code == 4
    rows = json.loads((await ran("audit", "--who", "ann", "--json")).out)
    assert [(row["action"], row["via"], row["outcome"]) for row in rows] == [
        ("audit.read", "token", "role.too_low"),
        ("sessions.say", "token", "done"),
        ("tokens.add", "session", "done"),
        ("sign-in", "link", "done"),
    ]
