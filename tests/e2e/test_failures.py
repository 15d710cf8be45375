"""What goes wrong around the spine, over the real processes: nothing is lost, each is said."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from fixtures.pulls import open_pull
from fixtures.spine import SECRET, Spine, raised
from upright.cli.demo import project as repository
from upright.cli.demo.project import draw
from upright.cli.demo.stage import MEMBER

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # a whole story, with pauses that endpoints ask for; the first sets everything up, too
    pytest.mark.timeout(90),
]
NO_MODEL: Final = "no model is configured: held for the operator"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Spine]:
    async with raised(tmp_path_factory.mktemp("spine")) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def spine(whole: Spine) -> Spine:
    await whole.mend()
    return whole


# ------------------------------------------------------------------ webhooks that are refused
GOOD: Final = json.dumps({"zen": "Keep it logically awesome."}).encode()


@dataclass(frozen=True, kw_only=True)
class Bad:
    """A webhook with one thing wrong, and what the hub answers."""

    status: int
    code: str
    source: str = "github"
    body: bytes = GOOD
    key: str = ""  # it is signed with this one, else with the right one
    headers: dict[str, str] = field(default_factory=dict)

    def signed(self, secret: str) -> dict[str, str]:
        digest = hmac.digest((self.key or secret).encode(), self.body, hashlib.sha256).hex()
        return {
            "Content-Type": "application/json",
            "X-GitHub-Event": "push",
            "X-GitHub-Delivery": "5d2f1ac0-0000-11ef-8d1e-000000000000",
            "X-Hub-Signature-256": f"sha256={digest}",
            **self.headers,
        }


@pytest.mark.clause("B2.4")
@pytest.mark.parametrize(
    "bad",
    [
        Bad(status=401, code="trigger.signature", key="another one's"),
        Bad(status=401, code="trigger.signature", headers={"X-Hub-Signature-256": ""}),
        Bad(status=404, code="source.unknown", source="gitlab"),
        Bad(status=413, code="body.too_large", source="small", body=b'"' + b"x" * 5000 + b'"'),
        Bad(status=400, code="trigger.malformed", body=b'{"zen": '),
        Bad(status=400, code="trigger.malformed", body=b"[1, 2]"),
        Bad(status=400, code="trigger.malformed", headers={"X-GitHub-Delivery": ""}),
        Bad(status=415, code="trigger.content_type", headers={"Content-Type": "text/plain"}),
        Bad(status=415, code="body.compressed", headers={"Content-Encoding": "gzip"}),
    ],
    ids=[
        "a-wrong-signature",
        "no-signature",
        "an-unknown-source",
        "an-oversized-body",
        "half-a-body",
        "no-object",
        "no-id",
        "a-wrong-content-type",
        "a-compressed-body",
    ],
)
async def test_a_bad_webhook_is_refused_with_its_code_and_leaves_nothing(
    spine: Spine, bad: Bad
) -> None:
    before = await spine.inbox()
    status, kind, said = await _post(spine, bad)
    assert (status, kind, said["code"]) == (bad.status, "application/problem+json", bad.code)
    assert said["detail"]
    assert await spine.inbox() == before
    if bad.code != "source.unknown":
        assert f'source="{bad.source}",code="{bad.code}"' in await _metrics(spine)


async def _post(spine: Spine, bad: Bad) -> tuple[int, str, dict[str, Any]]:
    headers = bad.signed(spine.stage.env[SECRET])
    url = f"{spine.hub.base}/hooks/{bad.source}"
    # as it is: the client would compress a body whose header says so
    async with spine.hub.session.post(
        url, data=bad.body, headers=headers, compress=False
    ) as answer:
        return answer.status, answer.content_type, json.loads(await answer.read())


async def _metrics(spine: Spine) -> str:
    async with spine.hub.session.get(f"{spine.hub.base}/metrics") as answer:
        return await answer.text()


# ------------------------------------------------------------------ twice, and nobody's
@pytest.mark.clause("B2.2", "B1.2")
async def test_a_webhook_that_comes_again_also_after_a_restart_is_one_trigger(
    spine: Spine,
) -> None:
    opened = await spine.github.post(
        "/_sandbox/repos/acme/ledger/issues", {"title": "Once only", "author": MEMBER}
    )
    (guid,) = opened["deliveries"]
    again = f"/_sandbox/deliveries/{guid}/redeliver"
    await _settled(spine, again)
    await spine.stop("hub")
    await spine.start_hub()
    await _settled(spine, again)
    told = await spine.github.get(f"/_sandbox/deliveries/{guid}")
    answers = [(one["status"], json.loads(one["answer"])["triggers"]) for one in told["attempts"]]
    first = answers[0][1][0]["id"]
    assert answers == [
        (202, [{"id": first, "duplicate": False}]),
        (200, [{"id": first, "duplicate": True}]),
        (200, [{"id": first, "duplicate": True}]),
    ]
    assert [row["id"] for row in await spine.inbox() if row["title"] == "Once only"] == [first]


async def _settled(spine: Spine, path: str) -> None:
    await spine.github.post("/_sandbox/settle", {})
    await spine.github.post(path, {})
    await spine.github.post("/_sandbox/settle", {})


@pytest.mark.clause("B3.1", "B3.2", "B4.1")
async def test_what_nobody_owns_is_held_or_ignored_and_says_why(spine: Spine) -> None:
    issues = "/_sandbox/repos/acme/ledger/issues"
    opened = await spine.github.post(issues, {"title": "Nobody's", "author": "passer-by"})
    number = opened["number"]
    noise = {"body": "Bump it", "author": "some-bot[bot]"}
    await spine.github.post(f"{issues}/{number}/comments", noise)
    await spine.github.post("/_sandbox/settle", {})
    rows = (await spine.upright("inbox", "--json", "--limit", "500")).json()
    mine = {row["kind"]: row for row in rows if row["thread_title"] == "Nobody's"}
    held, ignored = mine["issue.opened"], mine["comment.created"]
    assert (held["disposition"], ignored["disposition"]) == ("held", "ignored")
    assert "no policy accepts" in held["reason"]
    assert "some-bot[bot]" in ignored["reason"]
    assert ignored["rule"]


# ------------------------------------------------------------------ the model
@pytest.mark.clause("B4.2", "B11.8")
async def test_while_the_model_server_is_down_work_waits_and_then_goes_on(spine: Spine) -> None:
    await spine.stop("model")
    pull = await open_pull(spine, 73)
    guid = await pull.goes_red()
    told = await spine.github.get(f"/_sandbox/deliveries/{guid}")
    assert told["status"] == 202
    trigger = json.loads(told["attempts"][0]["answer"])["triggers"][0]["id"]

    async def failed() -> bool:
        why = await spine.hub.get(f"/v1/why/{trigger}")
        return any(turn["ending"] == "model.unavailable" for turn in why["turns"])

    await spine.until(failed)
    assert await pull.work() is None
    assert await spine.hub.get("/v1/stalled") == []
    await spine.start_model()
    await pull.comes_green()


@pytest.mark.clause("B11.3", "B11.8")
@pytest.mark.case("HO/2922")
async def test_a_worker_whose_model_asks_for_patience_waits_and_goes_on(spine: Spine) -> None:
    fault = {"kind": "rate_limited", "calls": 3, "agent": "worker", "retry_after_s": 1}
    await spine.model.post("/_scripted/faults", fault)
    pull = await open_pull(spine, 74)
    await pull.goes_red()
    item = await pull.reaches("waiting_system")
    assert "429" in item["reason"]
    await pull.comes_green()
    work = await pull.opened()
    (failed, *_) = turns = await _turns(spine, work["session_id"])
    assert failed["ending"] == "model.unavailable"
    assert turns[1]["started_at_ms"] - failed["ended_at_ms"] >= 1000


async def _turns(spine: Spine, session: str) -> list[dict[str, Any]]:
    shown = await spine.hub.get(f"/v1/sessions/{session}")
    turns: list[dict[str, Any]] = sorted(shown["turns"], key=lambda turn: turn["started_at_ms"])
    return turns


@pytest.mark.clause("B8.2")
async def test_a_stream_that_is_cut_leaves_no_half_thought(spine: Spine) -> None:
    fault = {"kind": "cut", "calls": 3, "agent": "worker", "after_chunks": 2}
    await spine.model.post("/_scripted/faults", fault)
    pull = await open_pull(spine, 75)
    await pull.goes_red()
    await pull.comes_green()
    work = await pull.opened()
    entries = await spine.hub.get(f"/v1/sessions/{work['session_id']}/entries?limit=500")
    messages = [entry["message"] for entry in entries]
    called = [call["id"] for message in messages for call in message["calls"]]
    answered = [message["call_id"] for message in messages if message["role"] == "tool"]
    assert called == answered
    assert (await spine.model.get("/_scripted/stats"))["faults_pending"] == 0


@pytest.mark.clause("B17.5", "B16.3")
async def test_a_hub_without_a_model_takes_in_says_why_and_holds(spine: Spine) -> None:
    whole = spine.config.read_text(encoding="utf-8")
    head, _, tail = whole.partition("[model]\n")
    spine.config.write_text(head + tail[tail.index("[sources.") :], encoding="utf-8")
    await spine.stop("hub")
    await spine.start_hub()
    calls = await spine.model.get("/_scripted/stats")
    pull = await open_pull(spine, 76)
    await pull.goes_red()
    rows = {row["kind"]: row for row in (await spine.inbox())[:2]}
    assert rows["pr.opened"]["disposition"] == "held"
    assert "no policy accepts" in rows["pr.opened"]["reason"]
    red = rows["ci.failed"]
    assert (red["disposition"], red["reason"], red["verdict"]) == ("held", NO_MODEL, "explicit")
    assert (await spine.upright("why", red["id"])).code == 0
    spine.config.write_text(whole, encoding="utf-8")
    assert await spine.stop("hub") == 0
    await spine.start_hub()
    assert await pull.work() is None
    assert await spine.model.get("/_scripted/stats") == calls


# ------------------------------------------------------------------ the device
@pytest.mark.clause("B10.2", "B11.9", "E7.12")
async def test_work_waits_for_a_device_that_is_away_and_goes_on_when_it_is_back(
    spine: Spine,
) -> None:
    await spine.stop("execd")
    pull = await open_pull(spine, 99)
    await pull.goes_red()
    job = await pull.job(word="fetch", state="queued")
    item = await pull.reaches("waiting_job")
    (wait,) = [one for one in item["waits"] if one["state"] == "open"]
    assert wait["ref"] == job["id"]
    assert wait["until_ms"] > wait["since_ms"]
    assert wait["then"]
    assert "offline" in (await spine.upright("device", "ls")).out
    assert "waiting_job" in (await spine.upright("work", "ls")).out
    await spine.start_execd()
    await pull.comes_green()


@pytest.mark.clause("B11.3", "B11.8", "E10.4")
async def test_without_a_device_for_the_repository_the_one_command_is_said(
    spine: Spine,
) -> None:
    folder = spine.plan.folder / "other"
    folder.mkdir()
    other = await asyncio.to_thread(repository.make, folder, draw(1), stays_red=False)
    body = {"full_name": "acme/other", "clone_url": str(other.remote)}
    await spine.github.post("/_sandbox/repos", body)
    pull = await open_pull(spine, 100, project=other, repo="acme/other")
    await pull.goes_red()
    await pull.reaches("waiting_system")
    said = (await spine.upright("requests", "ls")).out
    assert "acme/other" in said
    assert "execd workspace add" in said
    assert (await spine.execd("workspace", "add", str(other.checkout))).code == 0
    await pull.comes_green()
    assert "execd workspace add" not in (await spine.upright("requests", "ls")).out


# ------------------------------------------------------------------ configuration
WRONG: Final = [
    ("[hub]\nprot = 1\n", ["hub.prot", 'did you mean "port"?']),
    ("[hubb]\nport = 1\n", ["hubb", 'did you mean "hub"?']),
    ("[hub]\nport = 70000\n", ["port must be between 0 and 65535"]),
    ('[hub]\nport = "many"\n', ["hub.port"]),
    ('[model]\nbase_url = "http://127.0.0.1:1/v1"\n', ["model", "name is missing"]),
    ("[limits]\nsweep = 1\n", ["limits.sweep", 'did you mean "sweep_s"?']),
    ("[hub\n", ["this is no TOML"]),
]


@pytest.mark.parametrize(("text", "parts"), WRONG, ids=[parts[0] for _, parts in WRONG])
async def test_a_wrong_configuration_is_one_sentence_with_key_file_and_way_out(
    spine: Spine, tmp_path: Path, text: str, parts: list[str]
) -> None:
    file = tmp_path / "upright.toml"
    file.write_text(text, encoding="utf-8")
    said = await spine.run(["upright", "serve"], UPRIGHT_HOME=str(tmp_path))
    assert said.code in {1, 2}
    assert said.out == ""
    (sentence,) = said.err.strip().splitlines()
    for part in [str(file), *parts]:
        assert part in sentence


async def test_a_source_that_can_not_be_loaded_is_explained_and_stops_no_other(
    spine: Spine,
) -> None:
    whole = spine.config.read_text(encoding="utf-8")
    wrong = (
        '[sources.x]\nconnector = "githib"\n[sources.y]\nconnector = "github"\nsecrt = "env:A"\n'
    )
    spine.config.write_text(f"{whole}\n{wrong}", encoding="utf-8")
    await spine.stop("hub")
    await spine.start_hub()
    rows = {row["name"]: row for row in (await spine.upright("source", "ls", "--json")).json()}
    spine.config.write_text(whole, encoding="utf-8")
    assert {name: row["state"] for name, row in rows.items()} == {
        "github": "ready",
        "small": "ready",
        "x": "failed",
        "y": "failed",
    }
    for name, key, near in (("x", "connector", "github"), ("y", "secrt", "secret")):
        assert f"sources.{name}.{key} in {spine.config}: " in rows[name]["reason"]
        assert f'did you mean "{near}"?' in rows[name]["reason"]


async def test_a_missing_configuration_is_said_with_what_writes_one(
    spine: Spine, tmp_path: Path
) -> None:
    missing = tmp_path / "nowhere.toml"
    said = await spine.run(["upright", "--config", str(missing), "serve"])
    assert said.code == 2
    (sentence,) = said.err.strip().splitlines()
    assert str(missing) in sentence
    assert "upright init" in sentence


async def test_a_hub_that_was_never_set_up_says_what_does_that(
    spine: Spine, tmp_path: Path
) -> None:
    said = await spine.run(["upright", "serve", "--port", "0"], UPRIGHT_HOME=str(tmp_path))
    assert said.code in {1, 2}
    (sentence,) = said.err.strip().splitlines()
    assert "upright init" in sentence or "upright db migrate" in sentence
