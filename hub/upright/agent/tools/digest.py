"""Digest: the router looks at all that came, whoever it went to (B5.3)."""

from __future__ import annotations

from typing import Final

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool
from upright.store import digest

MOST: Final = 100


@arguments(config=STRICT)
class DigestArguments:
    """How many, and before which trigger; ``titles`` shows what they are called."""

    limit: int = Field(default=20, ge=1, le=MOST)
    before: str = Field(default="", description="a tr_…: what came before that")
    titles: bool = False


def _digest(here: Here, asked: DigestArguments) -> Outcome:
    found, read = digest.listed(
        here.u.c, before=asked.before, limit=asked.limit, titles=asked.titles
    )
    return Done(body={"triggers": found, "more": len(found) == asked.limit}, taints=read)


DIGEST: Final = Tool(
    name="digest",
    description="List what came, the newest first, whoever it went to: ids, kinds and what became "
    "of each. Titles are material. Read an id for what it says.",
    arguments=DigestArguments,
    run=_digest,
)
