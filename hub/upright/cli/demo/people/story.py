"""Story: somebody asks in chat what became of the fix, and somebody invites by mail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from typing import Any, Final

from upright.cli.demo.children import DemoError
from upright.cli.demo.people import letters
from upright.cli.demo.people.drawn import Cast
from upright.cli.demo.people.servers import CHANNEL, DIRECT, Servers
from upright.cli.demo.speaker import Speaker
from upright.cli.demo.stage import PYTHON, Stage, listed
from upright.cli.demo.story import Outcome

BOT_USER: Final = "U0HELPER01"  # whom Slack's sandbox gives the hub's token to
READY_S: Final = 20.0
CLI_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the second story needs; ``denies``: the person says no to the draft."""

    stage: Stage
    servers: Servers
    cast: Cast
    first: Outcome
    branch: str
    speaker: Speaker
    patience_s: float
    denies: bool = False

    @property
    def channel(self) -> str:
        """Where the question is asked."""
        return DIRECT if self.cast.asks_directly else CHANNEL


@dataclass(slots=True, kw_only=True)
class Seen:
    """What happened, for the checks; what did not is None or empty."""

    asked_ts: str = ""
    said: list[dict[str, Any]] = field(default_factory=list)
    draft: dict[str, Any] | None = None
    sent_before: int = -1
    decided_at: datetime | None = None
    sent: list[EmailMessage] = field(default_factory=list)
    work: dict[str, Any] | None = None
    gave_up: str = ""


async def play(scene: Scene) -> Seen:
    """Play the story as far as it goes; what went wrong is in ``gave_up``."""
    seen = Seen()
    try:
        await _until(scene, lambda: _ready(scene), READY_S, "a source did not become ready")
        await _ask(scene, seen)
        await _invite(scene, seen)
        await _decide(scene, seen)
    except DemoError as error:
        seen.gave_up = str(error)
        scene.speaker.step(f"gave up: {error}")
    await _look(scene, seen)
    return seen


async def _until(
    scene: Scene, holds: Callable[[], Awaitable[bool]], within_s: float, otherwise: str
) -> None:
    clock = scene.speaker.clock
    until = clock.monotonic() + within_s
    while not await holds():
        if clock.monotonic() >= until:
            raise DemoError(otherwise)
        scene.stage.children.check()
        await scene.stage.children.pause()


async def _ready(scene: Scene) -> bool:
    """Say whether the calendar, the mailbox and Slack are listened to."""
    sources = listed(await scene.stage.hub.get("/v1/sources"))
    heard = {one["name"] for one in sources if one["alive_at_ms"]}
    return {"post", "desk", "slack"} <= heard


# ------------------------------------------------------------------ chat
async def _ask(scene: Scene, seen: Seen) -> None:
    who, say = scene.cast, scene.speaker.step
    question = who.question.format(number=scene.first.number, branch=scene.branch)
    text = question if who.asks_directly else f"<@{BOT_USER}> {question}"
    told = await scene.servers.slack.post(
        f"/channels/{scene.channel}/messages", {"user": who.user, "text": text}
    )
    seen.asked_ts = str(told["event"]["ts"])
    how = "a direct message" if who.asks_directly else "a channel"
    scene.speaker.note("asked")
    say(f"{who.user_name} asks in {how}: {question}")

    async def answered() -> bool:
        seen.said = await said_by_us(scene)
        return bool(seen.said)

    await _until(scene, answered, scene.patience_s, "nobody answered in chat")
    scene.speaker.note("answered")
    for line in str(seen.said[0]["text"]).splitlines():
        say(f"  the hub answers: {line}")


async def said_by_us(scene: Scene) -> list[dict[str, Any]]:
    """Return what the hub has said in Slack, wherever."""
    found = list[dict[str, Any]]()
    for channel in (CHANNEL, DIRECT):
        messages = await scene.servers.slack.get(f"/channels/{channel}/messages")
        found += [{**one, "channel": channel} for one in messages if one.get("user") == BOT_USER]
    return found


# ------------------------------------------------------------------ mail
async def _invite(scene: Scene, seen: Seen) -> None:
    who = scene.cast
    now = scene.speaker.clock.now()
    await scene.servers.deliver(letters.invitation(who, now))
    scene.speaker.note("invited")
    scene.speaker.step(
        f"{who.inviter_name} invites by mail: {who.invited.title},"
        f" {letters.shown(who.invited)}; the calendar has {who.taken.title} there"
    )

    async def drafted() -> bool:
        asked = listed(await scene.stage.hub.get("/v1/requests"))
        approvals = [one for one in asked if one["kind"] == "approval"]
        seen.draft = approvals[0] if approvals else None
        return seen.draft is not None

    await _until(scene, drafted, scene.patience_s, "no draft waits for a person")
    scene.speaker.note("drafted")
    scene.speaker.step("a reply is drafted, and waits for you:")
    scene.speaker.say(await _cli(scene, "requests", "ls"))
    for line in str(seen.draft["prompt"] if seen.draft else "").splitlines():
        scene.speaker.step(f"  {line}")


async def _decide(scene: Scene, seen: Seen) -> None:
    """Play the person: look once more that nothing left, then approve or deny the draft."""
    if seen.draft is None:
        return
    seen.sent_before = len(await scene.servers.sent())
    seen.decided_at = scene.speaker.clock.now()
    words = ["deny" if scene.denies else "approve", str(seen.draft["id"])]
    if not scene.denies:
        words += ["--digest", str(seen.draft["digest"])[:10]]
    scene.speaker.step(f"$ upright {' '.join(words)}")
    scene.speaker.say(await _cli(scene, *words))
    scene.speaker.note("decided")
    until = "waiting_operator" if scene.denies else "completed"

    async def over() -> bool:
        seen.work = await scene.stage.hub.get(f"/v1/work/{_work(seen)}")
        asked = {one["id"] for one in listed(await scene.stage.hub.get("/v1/requests"))}
        return seen.work["state"] == until and _draft_id(seen) not in asked

    await _until(scene, over, scene.patience_s, f"the item did not become {until}")
    if not scene.denies:
        await _until(scene, lambda: _arrived(scene), scene.patience_s, "the reply never arrived")
        scene.speaker.note("arrived")
        scene.speaker.step(f"the reply arrived at {scene.cast.inviter}, by SMTP")


async def _arrived(scene: Scene) -> bool:
    return bool(await scene.servers.sent())


def _draft_id(seen: Seen) -> str:
    return str(seen.draft["id"]) if seen.draft else ""


def _work(seen: Seen) -> str:
    return str(seen.draft["work_id"]) if seen.draft else ""


async def _cli(scene: Scene, *words: str) -> str:
    argv = [*PYTHON, "upright", *words]
    return (await scene.stage.children.run(argv, env=scene.stage.env, within_s=CLI_S)).rstrip()


async def _look(scene: Scene, seen: Seen) -> None:
    """Look at everything once more, for the checks."""
    seen.said = await said_by_us(scene)
    seen.sent = await scene.servers.sent()
