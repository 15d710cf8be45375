"""Figures: what a run took, from the hub's own trail of the trigger that began it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def measure(why: Mapping[str, Any]) -> dict[str, float]:
    """Return seconds: webhook to first model bytes, and the quickest command's whole way.

    A command's way is from its row in the hub to its end in the hub: over the link, through the
    rules and the shim, and back. What did not happen is left out.
    """
    received_ms = why["trigger"]["received_at_ms"]
    replies = [one for one in why["events"] if one["stop"] == "llm.replied"]
    figures: dict[str, float] = {}
    if replies:
        first_ms = min(one["data"]["first_byte_ms"] for one in replies)
        figures["webhook_to_first_model_byte_s"] = (first_ms - received_ms) / 1000
        workers = [one for one in replies if one["work_id"]]
        if workers:
            worker_ms = min(one["data"]["first_byte_ms"] for one in workers)
            figures["webhook_to_worker_model_byte_s"] = (worker_ms - received_ms) / 1000
    ways = [
        (job["ended_at_ms"] - job["created_at_ms"]) / 1000
        for job in why["jobs"]
        if job["outcome"] == "exited"
    ]
    if ways:
        figures["quickest_command_s"] = min(ways)
    return figures
