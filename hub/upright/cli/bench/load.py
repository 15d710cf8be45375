"""Load: a client that posts signed webhooks all the time, and keeps its own log of the answers.

An id counts as acknowledged once its line is on the client's disk: that log, and nothing that the
hub says later, is the reference for what may not be lost.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from upright.cli.bench.draw import Dice
from upright.engine.ports import Clock

PAUSE_S: Final = 0.04
ANSWER_S: Final = 10.0
FIRST_ID: Final = 70_000_000
AGAIN_ONE_IN: Final = 4
PULLS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A comment's webhook as GitHub's sandbox sent it: all others are made from it."""

    headers: Mapping[str, str]
    body: Mapping[str, Any]

    def of(self, number: int) -> bytes:
        """Make the comment with this id, by a stranger, on another pull request."""
        body = json.loads(json.dumps(self.body))
        body["comment"] |= {"id": number, "body": f"Any news? ({number})"}
        body["issue"]["number"] = 9_000 + number % PULLS
        return json.dumps(body, separators=(",", ":")).encode()

    def signed(self, content: bytes, guid: str, secret: str) -> dict[str, str]:
        """Return the headers for it."""
        digest = hmac.digest(secret.encode(), content, hashlib.sha256).hex()
        ours = {"X-GitHub-Delivery": guid, "X-Hub-Signature-256": f"sha256={digest}"}
        dropped = {"X-Hub-Signature", "Accept"}
        return {name: value for name, value in self.headers.items() if name not in dropped} | ours


@dataclass(slots=True)
class Load:
    """The client; ``run`` posts until cancelled."""

    session: aiohttp.ClientSession
    url: str
    secret: str
    pattern: Pattern
    log: Path
    clock: Clock
    dice: Dice
    sent: int = 0
    unanswered: int = 0
    acknowledged: list[int] = field(default_factory=list)

    async def run(self) -> None:
        """Post one comment after the other, each until it is answered; some of them again."""
        number = FIRST_ID
        async with _opened(self.log) as handle:
            while True:
                number += 1
                await self._deliver(number)
                os.write(handle, f"{number}\n".encode())
                os.fsync(handle)
                self.acknowledged.append(number)
                if self.dice.below(AGAIN_ONE_IN) == 0:
                    past = self.acknowledged[self.dice.below(len(self.acknowledged))]
                    await self._deliver(past)
                await self.clock.sleep(PAUSE_S)

    async def _deliver(self, number: int) -> None:
        """Post until there is an answer of success: who gets none delivers once more."""
        while not await self._post(number):
            self.unanswered += 1
            await self.clock.sleep(PAUSE_S)

    async def _post(self, number: int) -> bool:
        self.sent += 1
        content = self.pattern.of(number)
        headers = self.pattern.signed(content, f"load-{number}-{self.sent}", self.secret)
        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        try:
            async with self.session.post(
                self.url, data=content, headers=headers, timeout=timeout
            ) as answer:
                await answer.read()
                return 200 <= answer.status < 300
        except (aiohttp.ClientError, TimeoutError):
            return False


@asynccontextmanager
async def _opened(path: Path) -> AsyncIterator[int]:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def acknowledged(log: Path) -> list[int]:
    """Read the log of answered ids; a torn last line was never counted."""
    whole = log.read_bytes().rpartition(b"\n")[0]
    return [int(line) for line in whole.splitlines()]
