"""Commands that the demo and the benches run are ended in good order: nothing of them is left."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

import pytest

from fixtures.eventually import eventually
from upright.cli.bench import strays
from upright.cli.demo.children import Children, DemoError
from upright.engine.clock import SystemClock
from upright.settings.load import environment

# it starts a process in a session of its own, and ends it when it is asked to end
PARENT: Final = """
import signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE,
                         start_new_session=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(child.kill() or child.wait()))
print("started", file=open("started", "w"), flush=True)
signal.pause()
"""


async def test_a_command_that_is_given_up_ends_what_it_started(tmp_path: Path) -> None:
    children = Children(tmp_path, environment(), SystemClock())
    async with asyncio.TaskGroup() as group:
        command = group.create_task(
            children.run([sys.executable, "-c", PARENT], env={}, within_s=60)
        )
        await eventually((tmp_path / "started").exists, within_s=30)
        command.cancel()
    assert strays.strays(tmp_path) == {}


async def test_a_command_that_takes_too_long_is_ended_and_told(tmp_path: Path) -> None:
    children = Children(tmp_path, environment(), SystemClock())
    with pytest.raises(DemoError, match=r"did not end within 0\.5 s"):
        await children.run([sys.executable, "-c", PARENT], env={}, within_s=0.5)
    assert strays.strays(tmp_path) == {}
