"""Crowd: the clients of a siege; each keeps its own synced log of what was answered.

An event counts as acknowledged once its line is on the client's disk: that log, and nothing that
the hub says later, is the reference for what may not be lost. A refusal is honoured: the client
waits as long as it was told, and delivers the same bytes again.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from upright.cli.bench.load import Pattern
from upright.cli.bench.siege.words import Pen, Said
from upright.engine.ports import Clock

PAUSE_S: Final = 0.15
AGAIN_S: Final = 0.05
ANSWER_S: Final = 10.0
REFUSALS: Final = frozenset({429, 503})
MOST_WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Where webhooks go, what signs them, and what they are made from."""

    session: aiohttp.ClientSession
    url: str
    secret: str
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Line:
    """One acknowledgement: of which event, on which issue; the first one for it, or a later."""

    key: str
    thread: int
    first: bool


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came back over all clients: how many acknowledged, and every answer by its status."""

    acknowledged: int = 0
    answers: Counter[str] = field(default_factory=Counter)


class Journal:
    """A log of lines, each on the disk when ``write`` returns."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, row: list[Any]) -> None:
        """Append one JSON line and sync it."""
        os.write(self._handle, json.dumps(row).encode() + b"\n")
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def rows(path: Path) -> list[list[Any]]:
    """Read a journal; a torn last line was never counted, and a missing file is empty."""
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def lines(path: Path) -> list[Line]:
    """Read a client's log, in the order in which it was answered."""
    return [Line(key, thread, first) for key, thread, first in rows(path)]


@dataclass(slots=True, kw_only=True)
class Client:
    """One client; ``run`` posts until ``closing`` is set, and ends with nothing under way."""

    door: Door
    pen: Pen
    log: Path
    clock: Clock
    tally: Tally
    closing: asyncio.Event
    sent: int = 0
    _known: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Say one thing after the other, each until it is answered."""
        journal = Journal(self.log)
        try:
            while not self.closing.is_set():
                for said in self.pen.next():
                    await self._deliver(said)
                    journal.write([said.key, said.thread, said.key not in self._known])
                    self._known.add(said.key)
                    self.tally.acknowledged += 1
                await self.clock.sleep(PAUSE_S)
        finally:
            journal.close()

    async def _deliver(self, said: Said) -> None:
        """Post until there is an answer of success."""
        content = said.body(self.door.pattern)
        while (wait_s := await self._post(said, content)) is not None:
            await self.clock.sleep(wait_s)

    async def _post(self, said: Said, content: bytes) -> float | None:
        """Post once; return how long to wait before the next try, or None when it was taken."""
        self.sent += 1
        guid = f"siege-{said.number}-{said.version}-{self.sent}"
        headers = self.door.pattern.signed(content, guid, self.door.secret)
        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        try:
            async with self.door.session.post(
                self.door.url, data=content, headers=headers, timeout=timeout
            ) as answer:
                await answer.read()
        except (aiohttp.ClientError, TimeoutError):
            self.tally.answers["none"] += 1
            return AGAIN_S
        self.tally.answers[str(answer.status)] += 1
        if 200 <= answer.status < 300:
            return None
        return _wait_s(answer) if answer.status in REFUSALS else AGAIN_S


def _wait_s(answer: aiohttp.ClientResponse) -> float:
    """Return what a refusal asks for, within reason; without a word, the pause after no answer."""
    asked = answer.headers.get("Retry-After", "")
    return min(float(asked), MOST_WAIT_S) if asked.isdigit() else AGAIN_S
