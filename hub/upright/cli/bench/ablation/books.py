"""Books: what the model's calls of one run used, by role, and when each task was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from upright.cli.bench.ablation.mind import LAST, ROUTER, WORKER
from upright.engine.ports import ChatReply, ChatRequest
from upright.llm.prices import PRICE_LIST

MODELS: Final = {ROUTER: "gpt-5-mini", WORKER: "gpt-5"}
"""Whose prices are taken: a lighter model for the router (B17.4)."""


@dataclass(slots=True, kw_only=True)
class Bill:
    """What one role's calls used; tokens, and micro-dollars."""

    calls: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    usd_micros: int = 0


@dataclass(slots=True, kw_only=True)
class Books:
    """``completed``: when each session ended its task; ``busts``: prompts without their past."""

    bills: dict[str, Bill] = field(default_factory=lambda: {ROUTER: Bill(), WORKER: Bill()})
    completed: dict[str, float] = field(default_factory=dict)
    under_way: int = 0
    busts: int = 0

    def note(self, request: ChatRequest, reply: ChatReply, at_s: float) -> None:
        """Write down a call that was answered."""
        bill, usage = self.bills[request.role], reply.usage
        bill.calls += 1
        bill.input += usage.input
        bill.cached += usage.cached
        bill.output += usage.output
        bill.usd_micros += PRICE_LIST.cost_usd_micros(MODELS[request.role], usage) or 0
        if any(call.name == LAST for call in reply.calls):
            self.completed[request.session] = at_s
