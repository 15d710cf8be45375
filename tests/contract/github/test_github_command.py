"""The command as a process: it says where it is, serves, and ends when it is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# The group that `upright sandbox` is, alone.
RUN: Final = """
import click
from upright_github import upright_commands
group = click.Group("sandbox")
upright_commands(group)
group()
"""


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", RUN, "github", "--token", "T", "--secret", "S", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


def test_it_prints_its_address_writes_it_and_ends_well_on_sigterm(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    with process("--ready-file", str(ready)) as started:
        assert started.stdout is not None
        told = json.loads(started.stdout.readline())
        assert json.loads(ready.read_text(encoding="utf-8")) == told
        headers = {"Authorization": "Bearer T", "User-Agent": "tests"}
        request = urllib.request.Request(f"{told['url']}/user", headers=headers)
        with urllib.request.urlopen(request, timeout=5) as answer:
            assert json.load(answer)["login"] == "upright-bot"
        with urllib.request.urlopen(told["control"], timeout=5) as answer:
            assert json.load(answer)["sandbox"] == "github"
        started.send_signal(signal.SIGTERM)
        assert started.wait(timeout=10) == 0


def test_a_port_that_is_taken_is_said_in_one_sentence() -> None:
    with process() as first:
        assert first.stdout is not None
        port = json.loads(first.stdout.readline())["url"].rpartition(":")[2]
        with process("--port", port) as second:
            _, error = second.communicate(timeout=15)
            assert second.returncode == 1
            assert error.startswith("Error: The sandbox can't run:")
            assert error.count("\n") == 1
