"""Streams: what is watched and followed goes on without a gap."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlmodel import SQLModel

from fixtures.cli_hub import Served
from fixtures.store_rows import entry, put, trigger
from fixtures.web_hub import TOKEN
from upright.cli import client
from upright.cli.client import Hub, UnreachableError
from upright.core.transcript import Message, Role
from upright.store import tables_world


@contextmanager
def running(*args: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Run a command as a process; yield the JSON objects that it prints."""
    argv = [sys.executable, "-m", "upright", *args, "--json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout
        yield (json.loads(line) for line in process.stdout)
        process.terminate()


async def happen(served: Served, *rows: SQLModel) -> None:
    await served.behind.store.write(lambda c: put(c, *rows))
    served.behind.bell.ring()


def test_the_inbox_is_watched(served: Served) -> None:
    with running("inbox", "--watch", "--limit", "1") as rows:
        assert next(rows)["id"] == "tr_green"
        new = trigger("tr_new", kind="ci.failed", title="New", at_ms=500, disposition="woke")
        event = tables_world.Event(at_ms=500, stop="intake.accepted", trigger_id="tr_new")
        served.call(happen(served, new, event))
        row = next(rows)
        assert (row["id"], row["title"], row["thread_title"]) == ("tr_new", "New", "Pull request 7")


def test_a_transcript_is_followed(served: Served) -> None:
    with running("session", "tail", "-f", "se_fix", "--entries", "1") as entries:
        assert next(entries)["n"] == 3
        said = entry("se_fix", 4, "tu_fix", Message(role=Role.ASSISTANT, text="done"))
        event = tables_world.Event(at_ms=500, stop="store.committed", session_id="se_fix")
        served.call(happen(served, said, event))
        assert next(entries)["message"]["text"] == "done"


def test_events_are_taken_up_behind_a_number(served: Served) -> None:
    hub = Hub(url=served.url, token=TOKEN)
    events = hub.events(hub.newest() - 2)
    first, second = next(events), next(events)
    assert (first.seq, first.stop, second.seq) == (8, "outbox.sent", 9)
    assert first.data["outbox_id"] == "ob_fixed"
    events.close()


def test_a_hub_that_stays_away_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RECONNECT_S", 0.0)
    with pytest.raises(UnreachableError):
        next(Hub(url="http://127.0.0.1:9", token="").events(0))
