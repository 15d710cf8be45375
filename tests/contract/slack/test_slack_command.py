"""The command as a process: it says where it is, serves, and ends when it is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

# The group that `upright sandbox` is, alone.
RUN: Final = """
import click
from upright_slack import upright_commands
group = click.Group("sandbox")
upright_commands(group)
group()
"""


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", RUN, "slack", "--bot-token", "B", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


def call(url: str, body: object = None, method: str = "GET", token: str = "") -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method)
    request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=5) as answer:
        value = json.load(answer)
    return value if isinstance(value, dict) else {"listed": value}


def test_it_serves_is_told_what_happens_and_ends_well_on_sigterm(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    with process("--ready-file", str(ready)) as started:
        assert started.stdout is not None
        told = json.loads(started.stdout.readline())
        assert json.loads(ready.read_text(encoding="utf-8")) == told
        api, control = told["url"], told["control"]
        assert call(f"{api}/auth.test", token="B")["user_id"] == "U0HELPER01"
        assert call(f"{api}/auth.test")["error"] == "invalid_auth"
        assert call(f"{control}/channels", {"id": "C1"}, "POST")["name"] == "C1"
        said = call(f"{control}/channels/C1/messages", {"user": "U1", "text": "hi"}, "POST")
        at = f"{control}/channels/C1/messages/{said['event']['ts']}"
        assert call(at, {"text": "ho"}, "PATCH")["event"]["subtype"] == "message_changed"
        call(f"{at}/reactions", {"user": "U1", "name": "eyes"}, "POST")
        (shown,) = call(f"{api}/conversations.history?channel=C1", token="B")["messages"]
        assert (shown["text"], shown["reactions"][0]["name"]) == ("ho", "eyes")
        call(f"{control}/faults", {"on": "call", "fault": "limited"}, "POST")
        with pytest.raises(urllib.error.HTTPError, match="429"):
            call(f"{api}/auth.test", token="B")
        with pytest.raises(urllib.error.HTTPError, match="422"):
            call(f"{control}/channels", {"id": "C2", "colour": "red"}, "POST")
        assert call(at, method="DELETE")["event"]["deleted_ts"] == said["event"]["ts"]
        assert call(f"{control}/events")["listed"][0]["event_id"] == said["event_id"]
        started.send_signal(signal.SIGTERM)
        assert started.wait(timeout=10) == 0
