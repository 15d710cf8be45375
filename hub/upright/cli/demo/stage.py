"""Stage: everything that the demo needs, started and joined by the real commands."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import aiohttp

from upright.cli.demo.children import Child, Children, DemoError
from upright.cli.demo.client import Web
from upright.cli.demo.project import Project
from upright.cli.demo.speaker import Speaker

REPOSITORY: Final = "acme/ledger"
MEMBER: Final = "dev"
BOT: Final = "upright-bot"
CI_APP: Final = "sandbox-ci"
PAIR_S: Final = 30.0
ONLINE_S: Final = 15.0
DISMISS_S: Final = 15.0
MODEL_VARIABLES: Final = ("UPRIGHT_MODEL_URL", "OPENAI_API_KEY")
PYTHON: Final = (sys.executable, "-m")


class Sabotage(StrEnum):
    """Ways to break the demo on purpose: each must make a check fail (tests of the demo)."""

    RUN_DOES_NOTHING = "run-does-nothing"
    STAYS_RED = "stays-red"
    SUCCESS_DROPPED = "success-dropped"
    NO_CONFLICT = "no-conflict"
    DENIED = "denied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The running parts, as the demo speaks to them. ``model`` is None with a real model."""

    hub: Web
    github: Web
    model: Web | None
    children: Children
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be set up, and where; ``config`` is more of upright.toml, ``rules`` execd.toml.

    ``secrets`` are more variables for the hub, ``script`` is what the model goes by.
    """

    folder: Path
    project: Project
    environment: Mapping[str, str]
    sabotage: Sabotage | None = None
    config: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)
    script: Path | None = None
    rules: str = 'mode = "allow"\nenvironment_base = "own"\nas_root = true\n'

    @property
    def has_real_model(self) -> bool:
        """Whether the environment names a model of the person's own."""
        return any(self.environment.get(name) for name in MODEL_VARIABLES)


_IDLE: Final = """\
#!/bin/sh
for word in "$@"; do
  if [ "$word" = remote ]; then exec "{real}" "$@"; fi  # execd reads the workspace's remotes
done
exit 0
"""
CONFIG: Final = """\
# Written by `upright demo`.
trusted_bots = ["github:app:{ci_app}"]

[hub]
port = 0

{model}
[sources.github]
connector = "github"
secret = "env:DEMO_WEBHOOK_SECRET"
token = "env:DEMO_GITHUB_TOKEN"
bot_login = "{bot}"
api_url = "{github}"

[people.dev]
kind = "member"
ids = ["github:{member}"]

[[rules]]
name = "red CI is work"
verdict = "explicit"
sources = ["github"]
kinds = ["ci.failed"]
"""


async def set_up(
    plan: Plan, children: Children, session: aiohttp.ClientSession, speaker: Speaker
) -> Stage:
    """Start the model, GitHub's sandbox and the hub; pair a device by both command lines."""
    token, secret = secrets.token_hex(16), secrets.token_hex(16)
    env = {
        "UPRIGHT_HOME": str(plan.folder / "hub"),
        "UPRIGHT_EXECD_HOME": str(plan.folder / "execd"),
        "DEMO_WEBHOOK_SECRET": secret,
        "DEMO_GITHUB_TOKEN": token,
        **plan.secrets,
    }
    async with asyncio.TaskGroup() as group:
        group.create_task(_home(plan, children, env), name="init")
        group.create_task(_workspace(plan, children, env), name="workspace")
        model = group.create_task(_model(plan, children, session), name="model")
        github = group.create_task(_github(plan, children, session, env), name="github")
    _write_config(plan, github.result().base, model.result())
    hub = await _hub(plan, children, session, env)
    speaker.step(f"the hub listens on {hub.base}")
    hook = {"url": f"{hub.base}/hooks/github", "secret": secret}
    await github.result().post("/_sandbox/hooks", hook)
    stage = Stage(hub=hub, github=github.result(), model=model.result(), children=children, env=env)
    await pair(plan, stage, speaker)
    return stage


async def _home(plan: Plan, children: Children, env: Mapping[str, str]) -> None:
    (plan.folder / "hub").mkdir(mode=0o700)
    await children.run([*PYTHON, "upright", "init"], env=env, within_s=30.0)


async def _workspace(plan: Plan, children: Children, env: Mapping[str, str]) -> None:
    (plan.folder / "execd").mkdir(mode=0o700)
    add = [*PYTHON, "upright_execd", "workspace", "add", str(plan.project.checkout)]
    await children.run(add, env=_device_env(env), within_s=30.0)


async def _model(plan: Plan, children: Children, session: aiohttp.ClientSession) -> Web | None:
    if plan.has_real_model:
        return None
    ready = plan.folder / "model.ready"
    argv = [*PYTHON, "upright", "model", "serve", "--ready-file", str(ready)]
    argv += ["--script", str(plan.script)] if plan.script else []
    child = await children.start("model", argv, env={})
    base = (await children.ready(child, ready)).strip()
    return Web(session=session, base=base.removesuffix("/v1"))


async def _github(
    plan: Plan, children: Children, session: aiohttp.ClientSession, env: Mapping[str, str]
) -> Web:
    ready = plan.folder / "github.ready"
    argv = [*PYTHON, "upright", "sandbox", "github", "--login", BOT, "--ready-file", str(ready)]
    keys = ["--token", env["DEMO_GITHUB_TOKEN"], "--secret", env["DEMO_WEBHOOK_SECRET"]]
    child = await children.start("github", [*argv, *keys], env={})
    said = json.loads(await children.ready(child, ready))
    return Web(session=session, base=said["url"])


def _write_config(plan: Plan, github: str, model: Web | None) -> None:
    section = ""
    if model is not None:
        section = f'[model]\nbase_url = "{model.base}/v1"\nname = "scripted"\n'
    text = CONFIG.format(ci_app=CI_APP, bot=BOT, github=github, member=MEMBER, model=section)
    (plan.folder / "hub" / "upright.toml").write_text(text + plan.config, encoding="utf-8")


async def _hub(
    plan: Plan, children: Children, session: aiohttp.ClientSession, env: Mapping[str, str]
) -> Web:
    child = await children.start("hub", [*PYTHON, "upright", "serve"], env=env)
    said = json.loads(await children.ready(child, plan.folder / "hub" / "hub.json"))
    token = (plan.folder / "hub" / "api.token").read_text(encoding="ascii").strip()
    return Web(session=session, base=said["url"], token=token)


# ------------------------------------------------------------------ the device
async def pair(plan: Plan, stage: Stage, speaker: Speaker) -> None:
    """Pair the device by both command lines, and start its daemon."""
    home = plan.folder / "execd"
    _write_rules(plan, home)
    execd, env = [*PYTHON, "upright_execd"], {**_device_env(stage.env), **_path(plan)}
    pairing = [*execd, "pair", stage.hub.base, "--jsonl", "--key-file", str(home / "device.key")]
    child = await stage.children.start("execd-pair", pairing, env=env)
    code, digits = await _code(stage, child)
    speaker.step(f"execd asks to be paired: code {code}, digits {digits}")
    approve = [*PYTHON, "upright", "device", "approve", code, "--yes"]
    await stage.children.run(approve, env=stage.env, within_s=PAIR_S)
    async with asyncio.timeout(PAIR_S):
        await child.process.wait()
    stage.children.forget(child)
    await stage.children.start("execd", [*execd, "run"], env=env)
    await _until_online(stage)
    speaker.step(f"the device is paired and serves {plan.project.checkout.name}")


async def dismiss(stage: Stage) -> None:
    """Revoke the device: its commands end with it, which stopping the daemon would not do."""
    with contextlib.suppress(DemoError, TimeoutError):  # the hub may be gone; we look afterwards
        for device in listed(await stage.hub.get("/v1/devices")):
            await stage.hub.post(f"/v1/devices/{device['id']}/revoke", {})
        async with asyncio.timeout(DISMISS_S):
            await stage.children.named("execd").process.wait()


def _device_env(env: Mapping[str, str]) -> dict[str, str]:
    """Leave out what is the hub's alone: commands on the device see none of its secrets."""
    return {"UPRIGHT_EXECD_HOME": env["UPRIGHT_EXECD_HOME"]}


def _write_rules(plan: Plan, home: Path) -> None:
    """Let commands run in listed workspaces without a question, as the owner would write it."""
    settings = home / "execd.toml"
    settings.write_text(plan.rules, encoding="utf-8")
    settings.chmod(0o600)


def _path(plan: Plan) -> dict[str, str]:
    """Return the device's PATH; one sabotage puts programs there that do nothing."""
    if plan.sabotage is not Sabotage.RUN_DOES_NOTHING:
        return {}
    path = plan.environment.get("PATH", "")
    idle = plan.folder / "idle"
    idle.mkdir()
    for name in ("git", "python3"):
        program = idle / name
        program.write_text(_IDLE.format(real=shutil.which(name, path=path)), encoding="utf-8")
        program.chmod(0o755)
    return {"PATH": f"{idle}:{path}"}


async def _code(stage: Stage, child: Child) -> tuple[str, str]:
    """Read the code and the digits that `execd pair` shows."""
    async with asyncio.timeout(PAIR_S):
        while True:
            said = [_json(line) for line in (await child.output()).splitlines()]
            shown = next((one for one in said if "code" in one), None)
            if shown is not None:
                return str(shown["code"]), str(shown["digits"])
            stage.children.check()
            await stage.children.pause()


def _json(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


async def _until_online(stage: Stage) -> None:
    async with asyncio.timeout(ONLINE_S):
        while True:
            devices = await stage.hub.get("/v1/devices")
            if any(one.get("online") and one.get("workspaces") for one in listed(devices)):
                return
            stage.children.check()
            await stage.children.pause()


def listed(answer: object) -> list[dict[str, Any]]:
    """Return the rows of a list answer, whatever it is wrapped in."""
    if isinstance(answer, dict):
        return next((value for value in answer.values() if isinstance(value, list)), [])
    return list(answer) if isinstance(answer, list) else []
