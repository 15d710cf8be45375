"""Postman: signs webhooks, delivers each once, and keeps what became of it.

GitHub gives up after ten seconds and never tries again by itself; neither does this.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

import aiohttp

from upright_github.sandbox.faults import DeliveryFault, Faults
from upright_github.sandbox.shapes import Shape, stamp
from upright_github.sandbox.world import NotThereError
from upright_github.webhook import FORM_TYPE, JSON_TYPE, sign

TIMEOUT_S: Final = 10.0
MAX_KEPT: Final = 10_000
_AGENT: Final = "GitHub-Hookshot/sandbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """Where webhooks go; ``events`` empty: all of them."""

    id: int
    url: str
    secret: str
    content_type: str = "json"
    events: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try: the answer's status, or 0 and why there was none."""

    at: datetime
    status: int
    answer: str
    redelivery: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One webhook for one hook, with all tries."""

    guid: str
    event: str
    action: str
    conclusion: str
    hook: Hook
    repository_id: int
    body: bytes
    attempts: tuple[Attempt, ...] = ()

    def headers(self) -> dict[str, str]:
        """Return the headers that GitHub sends."""
        secret = self.hook.secret.encode()
        form = self.hook.content_type == "form"
        return {
            "Accept": "*/*",
            "Content-Type": FORM_TYPE if form else JSON_TYPE,
            "User-Agent": _AGENT,
            "X-GitHub-Delivery": self.guid,
            "X-GitHub-Event": self.event,
            "X-GitHub-Hook-ID": str(self.hook.id),
            "X-GitHub-Hook-Installation-Target-ID": str(self.repository_id),
            "X-GitHub-Hook-Installation-Target-Type": "repository",
            "X-Hub-Signature": "sha1=" + hmac.digest(secret, self.body, hashlib.sha1).hex(),
            "X-Hub-Signature-256": sign(secret, self.body),
        }

    def told(self) -> Shape:
        """Return it as the control API shows it."""
        return {
            "guid": self.guid,
            "event": self.event,
            "action": self.action,
            "hook_id": self.hook.id,
            "status": self.attempts[-1].status if self.attempts else None,
            "attempts": [
                {
                    "at": stamp(attempt.at),
                    "status": attempt.status,
                    "answer": attempt.answer,
                    "redelivery": attempt.redelivery,
                }
                for attempt in self.attempts
            ],
        }


class Postman:
    """Delivers in tasks of the group that it is given."""

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        session: aiohttp.ClientSession,
        *,
        now: Callable[[], datetime],
        new_guid: Callable[[], str],
        faults: Faults,
    ) -> None:
        self._tasks = tasks
        self._session = session
        self._now = now
        self._new_guid = new_guid
        self._faults = faults
        self._flying: set[asyncio.Task[None]] = set()
        self.hooks: dict[int, Hook] = {}
        self.deliveries: dict[str, Delivery] = {}

    def post(self, event: str, payload: Shape) -> list[str]:
        """Begin to deliver an event to every hook that wants it; return the GUIDs."""
        return [
            self._begin(hook, event, payload)
            for hook in tuple(self.hooks.values())
            if not hook.events or event in hook.events
        ]

    def ping(self, hook: Hook, payload: Shape) -> str:
        """Greet a new hook."""
        return self._begin(hook, "ping", payload)

    def redeliver(self, guid: str) -> None:
        """Deliver the same bytes under the same GUID once more."""
        delivery = self.delivery(guid)
        self._fly(delivery, redelivery=True)

    def delivery(self, guid: str) -> Delivery:
        """Return one delivery."""
        try:
            return self.deliveries[guid]
        except KeyError:
            raise NotThereError("delivery", guid) from None

    async def settle(self, timeout_s: float) -> bool:
        """Wait until nothing is under way; False when that takes too long."""
        if self._flying:
            await asyncio.wait(self._flying, timeout=timeout_s)
        return not self._flying

    def close(self) -> None:
        """Stop what is under way."""
        for task in self._flying:
            task.cancel()

    def _begin(self, hook: Hook, event: str, payload: Shape) -> str:
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        form = hook.content_type == "form"
        delivery = Delivery(
            guid=self._new_guid(),
            event=event,
            action=payload.get("action", ""),
            conclusion=payload.get(event, {}).get("conclusion") or "",
            hook=hook,
            repository_id=payload["repository"]["id"] if "repository" in payload else 0,
            body=urlencode({"payload": text}).encode() if form else text.encode(),
        )
        self.deliveries[delivery.guid] = delivery
        while len(self.deliveries) > MAX_KEPT:
            del self.deliveries[next(iter(self.deliveries))]
        self._fly(delivery, redelivery=False)
        return delivery.guid

    def _fly(self, delivery: Delivery, *, redelivery: bool) -> None:
        name = f"delivery {delivery.guid}"
        task = self._tasks.create_task(self._deliver(delivery, redelivery=redelivery), name=name)
        self._flying.add(task)
        task.add_done_callback(self._flying.discard)

    async def _deliver(self, delivery: Delivery, *, redelivery: bool) -> None:
        # A delivery that was asked for is not spoiled again: that is how one recovers.
        rule = None
        if not redelivery:
            rule = self._faults.on_delivery(delivery.event, delivery.conclusion)
        if rule and rule.fault is DeliveryFault.DROP:
            self._keep(delivery.guid, 0, "dropped by a fault", redelivery=redelivery)
            return
        if rule and rule.fault is DeliveryFault.DELAY:
            await asyncio.sleep(rule.delay_s)
        await self._once(delivery, redelivery=redelivery)
        if rule and rule.fault is DeliveryFault.DUPLICATE:
            await self._once(delivery, redelivery=redelivery)

    async def _once(self, delivery: Delivery, *, redelivery: bool) -> None:
        try:
            async with self._session.post(
                delivery.hook.url,
                data=delivery.body,
                headers=delivery.headers(),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
                allow_redirects=False,
            ) as response:
                answer = (await response.read())[:2_000].decode("utf-8", "replace")
                status = response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            status, answer = 0, f"{type(error).__name__}: {error}"
        self._keep(delivery.guid, status, answer, redelivery=redelivery)

    def _keep(self, guid: str, status: int, answer: str, *, redelivery: bool) -> None:
        attempt = Attempt(at=self._now(), status=status, answer=answer, redelivery=redelivery)
        if known := self.deliveries.get(guid):
            self.deliveries[guid] = replace(known, attempts=(*known.attempts, attempt))
