"""Told: a run becomes a trigger, the same way for every provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from upright.api import Actor, Address, Channel, Code, Content, Context, Destination, Trigger
from upright.kit.ci import Run
from upright.kit.excerpt import excerpt
from upright.kit.mask import masked
from upright_ci.keys import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What a trigger needs besides its run.

    ``text`` is what the provider says; what failed stands before it. ``head`` is the repository
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
    said = "\n\n".join(
        filter(None, ("\n".join(str(one) for one in run.failures), telling.text.strip()))
    )
    return Trigger(
        kind=kind,
        channel=Channel.CI,
        actor=telling.actor,
        content=Content(title=run.title, text=excerpt(masked(said), where=run.url)),
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
