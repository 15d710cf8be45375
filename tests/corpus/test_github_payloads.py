"""Real payloads of GitHub, and cases written by hand, from ``../shared/data`` where it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from fixtures.connector import START, MemoryContext
from fixtures.github import signed, started
from upright.api import Channel, InboundRequest, SecretRef, Trigger, TriggerRejectedError
from upright_github.connector import GitHubConnector
from upright_github.sandbox import ci_shapes
from upright_github.sandbox.shapes import Shape, Shapes
from upright_github.sandbox.world import Commit, Issue, Pull, Push, Repository, Run, World
from upright_github.settings import GitHubSettings
from upright_github.translate import TABLE

DATA: Final = Path(__file__).parents[3] / "shared" / "data"
ABSENT: Final = "corpus: shared/data does not lie beside the checkout"
needs_corpus = pytest.mark.skipif(not DATA.is_dir(), reason=ABSENT)

# The kinds that the cases name, and ours. "Fixed" is a success after a failure: the hub sees that
# from the thread's history, a connector has none.
KINDS: Final = {"ci.run.failed": "ci.failed", "ci.run.fixed": "ci.succeeded"}


def payloads() -> list[Path]:
    folders = ("github", "github-ghes-3.5")
    found = [path for folder in folders for path in sorted((DATA / folder).glob("*/*.json"))]
    return found or [DATA]  # one that is skipped by name


def cases() -> list[Path]:
    found = sorted((DATA / "made").glob("*.expected.json"))
    return [path for path in found if loaded(path).get("connector") == "github"] or [DATA]


def name(path: Path) -> str:
    return path.relative_to(DATA).as_posix()


def read(path: Path) -> bytes:
    return path.read_bytes()


def loaded(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(read(path))
    return value


def check(trigger: Trigger) -> None:
    keys = (trigger.context.thread, *trigger.context.joins, *trigger.context.related)
    assert all(key.startswith("github:") and "/" in key for key in keys)
    assert len(set(keys)) == len(keys)
    assert trigger.dedupe[0] == "delivery:guid-1"
    assert len(set(trigger.dedupe)) == 2
    assert trigger.occurred_at is None or trigger.occurred_at.tzinfo
    assert trigger.context.code is not None
    assert trigger.content.title
    assert (trigger.channel is Channel.CI) is trigger.kind.startswith("ci.")


@needs_corpus
@pytest.mark.parametrize("form", [False, True], ids=["json", "form"])
@pytest.mark.parametrize("path", payloads(), ids=name)
async def test_every_signed_payload_is_understood_or_ignored(path: Path, *, form: bool) -> None:
    event, body = path.parent.name, read(path)
    async with started() as connector:
        triggers = await connector.receive(signed(event, body, form=form))
    assert len(triggers) == (event in TABLE)
    for trigger in triggers:
        check(trigger)


@needs_corpus
async def test_payloads_that_differ_have_keys_that_differ() -> None:
    """The sets hold one event in several forms (App or not): those share their second key."""
    seen = dict[str, set[str]]()
    async with started() as connector:
        for path in payloads():
            event = path.parent.name
            for trigger in await connector.receive(signed(event, read(path))):
                seen.setdefault(trigger.dedupe[1], set()).add(trigger.kind)
    assert all(len(kinds) == 1 for kinds in seen.values())
    assert len(seen) > 40


@needs_corpus
@pytest.mark.parametrize("path", cases(), ids=name)
async def test_the_cases_written_by_hand(path: Path) -> None:
    case = loaded(path)
    setup = case["setup"]
    memory = MemoryContext(secrets={"s": setup["signature_text"], "t": "unused"})
    settings = GitHubSettings(
        secret=SecretRef("s"), token=SecretRef("t"), bot_login=setup["bot_identity"]["login"]
    )
    connector, told = GitHubConnector("github", settings), dict[int, Trigger]()
    await connector.start(memory)
    try:
        for delivery in case["deliveries"]:
            headers = {key.lower(): value for key, value in delivery["headers"].items()}
            body = read(path.with_name(delivery["file"]))
            request = InboundRequest(headers=headers, body=body)
            if case["expected"]["answers"][str(delivery["n"])] == "2xx":
                (told[delivery["n"]],) = await connector.receive(request)
                continue
            with pytest.raises(TriggerRejectedError):
                await connector.receive(request)
    finally:
        await connector.stop(timeout_s=1)
    for wanted in case["expected"]["triggers"]:
        compare(told[wanted["from"][0]], wanted, people=setup["people"])


def compare(trigger: Trigger, wanted: dict[str, Any], *, people: dict[str, str]) -> None:
    facts = dict(trigger.context.facts)
    assert trigger.kind == KINDS.get(wanted["kind"], wanted["kind"])
    assert trigger.channel == wanted["channel"]
    assert trigger.actor.id == wanted["actor"]["id"]
    # Whom the configuration knows is for intake to say; to the connector that is a stranger.
    known = people.get(trigger.actor.id)
    assert trigger.actor.kind == ("stranger" if known else wanted["actor"]["kind"])
    assert wanted["dedupe_key"]["X-GitHub-Delivery"] in trigger.dedupe[0]
    assert trigger.context.address == wanted["address"]
    key = wanted["thread_key"]
    number = key.get("pull_request") or key.get("issue")
    assert trigger.context.thread == f"github:git.example.org/{key['repository']}#{number}"
    assert trigger.context.edit_of == (wanted["edit_of"] or "")
    assert trigger.occurred_at is not None
    assert trigger.occurred_at.isoformat().replace("+00:00", "Z") == wanted["occurred_at"]
    assert trigger.content.title == wanted.get("title", trigger.content.title)
    text = trigger.content.text.replace("\r\n", "\n").strip()
    assert text == wanted.get("text", text)
    assert all(part in text for part in wanted.get("text_must_contain", []))
    for fact, value in wanted.get("run", {}).items():
        assert facts[fact] == value
    place = wanted.get("place", {})
    for fact in ("path", "side", "diff_hunk"):
        assert facts.get(fact) == place.get(fact)
    assert facts.get("outdated") == ("yes" if place.get("outdated") else None)


@needs_corpus
async def test_red_and_green_of_one_check_are_one_thread() -> None:
    async with started() as connector:
        files = [DATA / f"made/ci-check-run-red-green.{number}.json" for number in (1, 2)]
        requests = [signed("check_run", read(path)) for path in files]
        red, green = [(await connector.receive(request))[0].context for request in requests]
    base = "github:git.example.org/paper-lantern/harbor-clock"
    branch = f"{base}:paper-lantern/harbor-clock:winter-gears"
    assert red.thread == green.thread == f"{base}#63"
    assert red.joins == (f"{base}@a72c74c807630e95cb51380cd77bcb66873e4d81", branch)
    assert green.joins == (f"{base}@028df8783a3d26d9f2a96966fb1b27854b1fdc09", branch)


# ------------------------------------------------------------------ the sandbox's shapes
# What a payload has only for some receivers, or only where there is such a thing.
OPTIONAL: Final = {"installation", "organization", "deployment", "permissions"}


def missing(real: object, ours: object, place: str = "") -> Iterator[str]:
    """Yield the places of *real* that *ours* lacks, and those of another type."""
    match real, ours:
        case dict(), dict():
            for key in real.keys() - OPTIONAL:
                if key not in ours:
                    yield f"{place}.{key}"
                else:
                    yield from missing(real[key], ours[key], f"{place}.{key}")
        case [first, *_], [second, *_]:
            yield from missing(first, second, f"{place}[]")
        case (None, _) | (_, None) | (list(), list()):
            pass
        case _:
            if type(real) is not type(ours):
                yield f"{place}: {type(real).__name__}, not {type(ours).__name__}"


def shown() -> dict[str, Shape]:
    """Return one payload of the sandbox for each event, without its sender."""
    world = World(now=lambda: START, login="bot")
    shapes = Shapes("http://127.0.0.1:1", world)
    repository: Repository = world.add_repository(
        "acme/app", "", default_branch="main", private=False
    )
    plain = Issue(
        id=1,
        repo="acme/app",
        number=1,
        title="t",
        body="b",
        author="ann",
        created_at=START,
        updated_at=START,
    )
    pull = Pull(id=2, head="fix", sha="a", head_repo="acme/app", base="main", base_sha="b")
    world.put_issue(plain)
    request = Issue(
        id=3,
        repo="acme/app",
        number=2,
        title="t",
        body="b",
        author="ann",
        created_at=START,
        updated_at=START,
        pull=pull,
    )
    world.put_issue(request)
    comment = world.add_comment(plain, "text", "bea")
    run = Run(
        id=5,
        repo="acme/app",
        name="unit",
        sha="a",
        branch="fix",
        status="completed",
        conclusion="failure",
        started_at=START,
        completed_at=START,
        app="ci",
        actor="ann",
        named=(2,),
    )
    told = Push(
        ref="r", before="b", after="a", author="ann", commits=(Commit(id="a", message="m"),)
    )
    common = {
        "action": "a",
        "repository": shapes.repository(repository),
        "sender": shapes.user("x"),
    }
    return {
        "check_run/1": {**common, "check_run": ci_shapes.check_run(shapes, run)},
        "workflow_run/4": {
            **common,
            "workflow": ci_shapes.workflow(shapes, run),
            "workflow_run": ci_shapes.workflow_run(shapes, run),
        },
        "push/5": {**ci_shapes.push(shapes, repository, told), "sender": shapes.user("x")},
        "pull_request/13": {**common, "number": 2, "pull_request": shapes.pull(request)},
        "issues/15": {**common, "issue": shapes.issue(plain)},
        "issue_comment/3": {
            **common,
            "issue": shapes.issue(plain),
            "comment": shapes.comment(comment),
        },
    }


@needs_corpus
@pytest.mark.parametrize(("example", "ours"), shown().items(), ids=list(shown()))
def test_the_sandbox_sends_every_field_that_github_sends(example: str, ours: Shape) -> None:
    real = loaded(DATA / "github" / f"{example}.json")
    assert sorted(missing(real, ours)) == []
