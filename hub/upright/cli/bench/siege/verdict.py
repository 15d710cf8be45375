"""Verdict of a siege: what was lost, doubled or stuck, once all is quiet and the hub is stopped.

The reference is what others know: the clients' own logs of answered events, the person's log of
answered questions, and the comments at GitHub's sandbox with their hidden markers.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from upright.cli.bench.siege.crowd import Line, lines, rows
from upright.cli.bench.siege.findings import Findings
from upright.core.outbox import OutboxState
from upright.store import audit, oracle
from upright.store.address import Address
from upright.store.audit import Effect, Event
from upright.store.outsider import look
from upright.store.unit import Connection

SOURCE: Final = "github"
MARKER: Final = re.compile(r"<!-- upright:(?P<key>\S+) (?P<part>\d+)/\d+ -->\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """What others wrote down: a log for each client, and the person's."""

    clients: tuple[Path, ...]
    person: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    events: list[Event]
    keys: dict[str, str]
    effects: list[Effect]
    children: Counter[str]
    answered: set[str]
    items: int
    wrong: list[str]
    stuck: list[str]
    untaken: list[str]
    disordered: list[str]


async def judge(
    where: Address, logs: Logs, visible: Sequence[Mapping[str, Any]], findings: Findings
) -> None:
    """Compare the rows with the logs, and with *visible*: every comment of ours at the sandbox."""
    stored = await look(where, _rows)
    clients = [await asyncio.to_thread(lines, log) for log in logs.clients]
    person = [str(row[0]) for row in await asyncio.to_thread(rows, logs.person)]
    findings.acknowledged = len({line.key for client in clients for line in client})
    findings.items = stored.items
    findings.whole += 1
    findings.broken += stored.wrong
    findings.stuck += stored.stuck
    findings.lost += [*_unstored(clients, stored.keys), *stored.untaken]
    findings.lost += [
        f"{request} was answered, and that is not stored"
        for request in person
        if request not in stored.answered
    ]
    findings.doubled += _twice(stored.events)
    findings.broken += [*stored.disordered, *_out_of_order(clients, stored)]
    findings.doubled += _repeated(stored)
    _effects(stored.effects, visible, findings)


def _rows(c: Connection) -> _Rows:
    stalled = [*oracle.stalled(c), *oracle.unheard(c)]
    return _Rows(
        events=audit.events(c, SOURCE),
        keys=audit.keys(c, SOURCE),
        effects=audit.effects(c),
        children=audit.children(c),
        answered=audit.answered(c),
        items=audit.items(c),
        wrong=[*audit.whole(c), *audit.miscalled(c)],
        stuck=[f"{one.id} is {one.state}, and {one.missing}" for one in stalled],
        untaken=audit.untaken(c),
        disordered=audit.disordered(c),
    )


# ------------------------------------------------------------------ what came in
def _unstored(clients: Sequence[Sequence[Line]], keys: Collection[str]) -> list[str]:
    return [
        f"{line.key} was answered, and is not there"
        for client in clients
        for line in client
        if line.first and line.key not in keys
    ]


def _twice(events: Sequence[Event]) -> list[str]:
    """Find what is stored twice: the same thing, changed at the same moment."""
    counts = Counter((one.kind, one.native, one.occurred_ms) for one in events if one.native)
    return [
        f"{kind} {native} is stored {times} times"
        for (kind, native, _), times in counts.items()
        if times > 1
    ]


def _out_of_order(clients: Sequence[Sequence[Line]], stored: _Rows) -> list[str]:
    """Find what one client said first on a thread, and what is stored behind its next word."""
    numbers = {one.id: one.seq for one in stored.events}
    found = []
    for client in clients:
        latest: defaultdict[int, int] = defaultdict(int)
        for line in client:
            number = numbers.get(stored.keys.get(line.key, ""), 0)
            if not line.first or not number:
                continue
            if number < latest[line.thread]:
                found.append(f"{line.key} is stored behind what was said after it")
            latest[line.thread] = max(number, latest[line.thread])
    return found


# ------------------------------------------------------------------ what went out
def _repeated(stored: _Rows) -> list[str]:
    """Find what a worker did twice: by the script each replies once, and has one child at most."""
    replies = Counter(effect.session for effect in stored.effects)
    return [
        *(f"{one} replied {times} times" for one, times in replies.items() if times > 1),
        *(f"{one} has {times} children" for one, times in stored.children.items() if times > 1),
    ]


def _effects(
    effects: Sequence[Effect], visible: Sequence[Mapping[str, Any]], findings: Findings
) -> None:
    """Compare each effect with what is visible of it: the receipt says which comment it is."""
    seen: defaultdict[str, list[str]] = defaultdict(list)
    for comment in visible:
        hit = MARKER.search(str(comment["body"]))
        seen[unquote(hit["key"]) if hit else ""].append(str(comment["id"]))
    for effect in effects:
        _one_effect(effect, seen.pop(effect.key, []), findings)
    findings.effects = len(effects)
    findings.doubled += [f"comments {ids} are of no effect ({key})" for key, ids in seen.items()]


def _one_effect(effect: Effect, ids: Sequence[str], findings: Findings) -> None:
    if len(ids) > 1:
        findings.doubled.append(f"{effect.id} is visible {len(ids)} times")
    match effect.state:
        case OutboxState.SENT:
            if effect.receipt not in ids:
                findings.lost.append(f"{effect.id} has receipt {effect.receipt}; visible: {ids}")
        case OutboxState.UNKNOWN:
            findings.unknown += 1
        case OutboxState.PENDING | OutboxState.SENDING:
            findings.stuck.append(f"{effect.id} is still {effect.state}")
        case OutboxState.HELD | OutboxState.EXPIRED | OutboxState.DEAD:
            if ids:
                findings.broken.append(f"{effect.id} is {effect.state}, and visible: {ids}")
