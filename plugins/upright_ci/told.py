"""Told: a run becomes a trigger, the same way for every provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from upright.api import Actor, Address, Channel, Code, Content, Context, Destination, Trigger
from upright.kit.ci import Run
from upright.kit.excerpt import excerpt
from upright.kit.mask import masked
from upright_ci.keys import Place

MAX_SHOWN: Final = 100  # failures that the text tells; the facts count and name them
MAX_CHARS: Final = 100_000  # far more than an excerpt shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What a trigger needs besides its run.

    ``text`` is what the provider says; what failed stands behind it. ``head`` is the repository
    that the commit was pushed to, where it is another one. ``facts`` are the provider's own.
    """

    place: Place
    actor: Actor
    at: datetime | None
    dedupe: tuple[str, ...]
    text: str = ""
    urls: tuple[str, ...] = ()
    head: str = ""
    fork: bool = False
    reply_to: Destination | None = None
    facts: Mapping[str, str] = field(default_factory=dict)


def trigger(kind: str, run: Run, telling: Telling) -> Trigger:
    """Return the trigger of a run; its raw bytes are for the caller to add."""
    place = telling.place
    keys = place.run(run, head=telling.head, fork=telling.fork)
    facts = {
        **run.facts(),
        "branch_keys": place.branches(),
        "fork": "yes" if telling.fork else "",
        **telling.facts,
    }
    shown, more = run.failures[:MAX_SHOWN], len(run.failures) - MAX_SHOWN
    parts = [*map(str, shown), *([f"… and {more} more"] if more > 0 else [])]
    said = "\n\n".join(filter(None, (telling.text.strip(), "\n".join(parts))))
    return Trigger(
        kind=kind,
        channel=Channel.CI,
        actor=telling.actor,
        content=Content(title=run.title, text=excerpt(masked(said[:MAX_CHARS]), where=run.url)),
        context=Context(
            thread=keys.thread,
            joins=keys.joins,
            related=keys.related,
            reply_to=telling.reply_to,
            address=Address.NONE,
            links=tuple(filter(None, (run.url,))),
            code=Code(
                repository=run.repository,
                urls=telling.urls,
                sha=run.sha,
                branch=run.branch,
                number=run.number,
                fork=telling.fork,
            ),
            facts=tuple((key, masked(value)) for key, value in facts.items() if value),
        ),
        dedupe=telling.dedupe,
        occurred_at=telling.at,
    )
