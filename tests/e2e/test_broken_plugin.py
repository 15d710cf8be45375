"""A plugin that raises on import: the hub runs on, takes what others bring, and says so."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from fixtures.eventually import eventually_awaited
from upright.settings.load import environment

CONFIG: Final = """
[hub]
port = 0
[sources.sad]
connector = "sad"
[sources.gh]
connector = "github"
secret = "env:S"
token = "env:T"
bot_login = "my-bot"
[sources.off]
connector = "sad"
enabled = false
"""
MANIFEST: Final = 'name = "sad"\napi = 1\nmodule = "sad_plugin"\nkinds = ["sad"]\n'


@dataclass(frozen=True, slots=True)
class Machine:
    """A home, an environment with a broken plugin in it, and the commands of it."""

    folder: Path
    env: dict[str, str]

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "upright", *args]
        return subprocess.run(
            command, env=self.env, capture_output=True, text=True, check=False, timeout=60
        )

    def address(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.folder / "hub.address").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    path, home = tmp_path / "lib", tmp_path / "home"
    for folder in (home, path / "sad_plugin", path / "sad-1.dist-info"):
        folder.mkdir(parents=True)
    (path / "sad_plugin/__init__.py").write_text('raise OSError("no such library")\n')
    (path / "sad_plugin/upright-plugin.toml").write_text(MANIFEST)
    (path / "sad-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: sad\nVersion: 1\n")
    (path / "sad-1.dist-info/entry_points.txt").write_text("[upright]\nsad = sad_plugin\n")
    (home / "upright.toml").write_text(CONFIG)
    env = {**environment(), "UPRIGHT_HOME": str(home), "PYTHONPATH": str(path), "S": "s", "T": "t"}
    for name in ("OPENAI_API_KEY", "UPRIGHT_HUB", "UPRIGHT_TOKEN", "UPRIGHT_CONFIG"):
        env.pop(name, None)
    return Machine(home, env)


@pytest.fixture
def hub(machine: Machine) -> Iterator[subprocess.Popen[bytes]]:
    assert machine.run("init").returncode == 0
    log = (machine.folder / "log").open("wb")
    command = [sys.executable, "-m", "upright", "serve"]
    process = subprocess.Popen(command, env=machine.env, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)
        log.close()


@pytest.mark.feature("common.breaker")
@pytest.mark.timeout(120)  # five processes are started, on a machine that may be busy
async def test_a_plugin_that_raises_on_import_leaves_the_hub_running_and_says_so(
    machine: Machine, hub: subprocess.Popen[bytes]
) -> None:
    async def answers() -> bool:
        listed = await asyncio.to_thread(machine.run, "source", "ls", "--json")
        return listed.returncode == 0

    await eventually_awaited(answers, within_s=60.0, every_s=0.2)
    listed = await asyncio.to_thread(machine.run, "source", "ls", "--json")
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert rows["gh"]["state"] == "ready"
    assert rows["sad"]["state"] == "failed"
    assert "sad can't be imported: OSError: no such library" in rows["sad"]["reason"]
    assert (rows["off"]["state"], hub.poll()) == ("paused", None)
    plugins = await asyncio.to_thread(machine.run, "plugin", "ls", "--json")
    named = {row["name"]: row for row in json.loads(plugins.stdout)}
    assert (named["sad"]["state"], named["github"]["state"]) == ("failed", "in use")
    assert "no such library" in named["sad"]["reason"]
    tested = await asyncio.to_thread(machine.run, "source", "test", "sad")
    assert (tested.returncode, "no such library" in tested.stdout) == (1, True)
