"""Stage of a siege: the scripted model, GitHub's sandbox with its issues, and the hub's home."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from upright.cli.bench.load import Pattern
from upright.cli.bench.siege.crowd import Door
from upright.cli.bench.siege.words import LISTED_BOT
from upright.cli.demo.children import Children
from upright.cli.demo.client import Web
from upright.cli.demo.stage import BOT, MEMBER, PYTHON, REPOSITORY
from upright.store.address import Address, server

SCRIPT: Final = Path(__file__).with_name("script.toml")
KEY_VARIABLE: Final = "SIEGE_WEBHOOK_KEY"
API_VARIABLE: Final = "SIEGE_GITHUB_KEY"
CONFIG: Final = """\
# Written by `upright bench siege`.
bots = ["github:{bot}"]

[hub]
port = {port}
state_dir = "{state}"

[database]
url = "{url}"

[model]
base_url = "{model}/v1"
name = "scripted"

[sources.github]
connector = "github"
secret = "env:{secret}"
token = "env:{token}"
bot_login = "{login}"
api_url = "{github}"

[people.dev]
kind = "member"
ids = ["github:{member}"]

[limits]
lease_s = {lease_s}
sweep_s = 0.25
outbox_base_s = 0.1
outbox_cap_s = 0.5
connector_base_s = 0.1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be set up: where, how many issues, on which database (empty: a file)."""

    folder: Path
    threads: int
    url: str
    lease_s: float
    spare_bytes: int | None = None  # below it the hub takes nothing in; None: its default

    @property
    def state(self) -> Path:
        """The hub's state folder: in the mode ``full`` a small disk of its own."""
        return self.folder / "state"

    @property
    def where(self) -> Address:
        """The database."""
        return server(self.url) if self.url else self.state / "upright.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The running parts beside the hub, and how the hub is spoken to."""

    plan: Plan
    hub: Web
    github: Web
    door: Door
    children: Children
    env: Mapping[str, str]


async def set_up(plan: Plan, children: Children, session: aiohttp.ClientSession) -> Stage:
    """Start the model and the sandbox, open the issues, and make the hub's home; no hub yet."""
    port, secret = _free_port(), secrets.token_hex(16)
    env = {
        "UPRIGHT_HOME": str(plan.folder / "hub"),
        KEY_VARIABLE: secret,
        API_VARIABLE: secrets.token_hex(16),
    }
    model = await _model(plan, children)
    github = Web(session=session, base=await _github(plan, children, env))
    _write_config(plan, port, model, github.base)
    await children.run([*PYTHON, "upright", "init"], env=env, within_s=30.0)
    hub = Web(session=session, base=f"http://127.0.0.1:{port}", token=_token(plan))
    url = f"{hub.base}/hooks/github"
    pattern = await _issues(github, plan.threads, {"url": url, "secret": secret})
    door = Door(session=session, url=url, secret=secret, pattern=pattern)
    return Stage(plan=plan, hub=hub, github=github, door=door, children=children, env=env)


def _free_port() -> int:
    """Return a port that is free now: the hub has it over all its lives."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


async def _model(plan: Plan, children: Children) -> str:
    ready = plan.folder / "model.ready"
    argv = [*PYTHON, "upright", "model", "serve", "--script", str(SCRIPT)]
    child = await children.start("model", [*argv, "--ready-file", str(ready)], env={})
    return (await children.ready(child, ready)).strip().removesuffix("/v1")


async def _github(plan: Plan, children: Children, env: Mapping[str, str]) -> str:
    ready = plan.folder / "github.ready"
    argv = [*PYTHON, "upright", "sandbox", "github", "--login", BOT, "--ready-file", str(ready)]
    keys = ["--token", env[API_VARIABLE], "--secret", env[KEY_VARIABLE]]
    child = await children.start("github", [*argv, *keys], env={})
    said: dict[str, str] = json.loads(await children.ready(child, ready))
    return said["url"]


def _write_config(plan: Plan, port: int, model: str, github: str) -> None:
    text = CONFIG.format(
        bot=LISTED_BOT,
        port=port,
        state=plan.state,
        url=plan.url,
        model=model,
        secret=KEY_VARIABLE,
        token=API_VARIABLE,
        login=BOT,
        github=github,
        member=MEMBER,
        lease_s=plan.lease_s,
    )
    if plan.spare_bytes is not None:
        text += f"disk_free_bytes = {plan.spare_bytes}\n"
    (plan.folder / "hub").mkdir(mode=0o700)
    (plan.folder / "hub" / "upright.toml").write_text(text, encoding="utf-8")


def _token(plan: Plan) -> str:
    return (plan.state / "api.token").read_text(encoding="ascii").strip()


async def _issues(github: Web, threads: int, hook: Mapping[str, object]) -> Pattern:
    """Open the issues, and take what GitHub would send for a comment: the hub is not there yet."""
    await github.post("/_sandbox/repos", {"full_name": REPOSITORY})
    await github.post("/_sandbox/hooks", hook)
    for number in range(1, threads + 1):
        await github.post(_path(), {"title": f"Case {number}", "author": MEMBER})
    said = {"body": "Any news?", "author": "passer-by"}
    told = await github.post(_path("/1/comments"), said)
    await github.post("/_sandbox/settle", {})
    delivery = await github.get(f"/_sandbox/deliveries/{told['deliveries'][0]}")
    return Pattern(headers=delivery["headers"], body=json.loads(delivery["body"]))


def _path(rest: str = "") -> str:
    return f"/_sandbox/repos/{REPOSITORY}/issues{rest}"


async def comments(stage: Stage) -> list[dict[str, Any]]:
    """Return every comment of the bot at the sandbox."""
    found = []
    for number in range(1, stage.plan.threads + 1):
        told: list[dict[str, Any]] = await stage.github.get(_path(f"/{number}/comments"))
        found += [one for one in told if one["user"]["login"] == BOT]
    return found
