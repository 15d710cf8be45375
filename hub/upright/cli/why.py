"""``upright why``: one trigger's path through the stops, as a tree with times and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place

Json = Mapping[str, Any]
OUTPUT_CHARS: Final = 100
_HOW: Final[Mapping[str, str]] = {
    "cancel": "it cut short what was under way",
    "parallel": "answered beside the turn",
}
_BRANCH: Final = ("├─ ", "│  ")
_LAST: Final = ("└─ ", "   ")


@click.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def why(place: Place, wanted: str, as_json: bool) -> None:
    """Show the path of a trigger, or of the one that opened a work item."""
    emit_why(place.hub.get("v1", "why", wanted), as_json=as_json)


def emit_why(found: Json, *, as_json: bool) -> None:
    """Print a path."""
    if as_json:
        render.emit_json(found)
        return
    for line in lines(found):
        click.echo(line)


def lines(found: Json) -> Iterator[str]:
    """Write the path: the trigger, its events in order under the turn that they belong to, cost."""
    trigger = found["trigger"]
    began_ms = trigger["received_at_ms"]
    yield f"{_bold(trigger['id'])}  {render.safe(trigger['kind'])} from {trigger['source']}"
    yield (
        f"  {render.day(began_ms)}  {render.state(trigger['disposition'])}: "
        f"{render.safe(trigger['reason'])}"
    )
    yield f"  rule {render.safe(trigger['rule'])!r} ({trigger['verdict']})"
    if trigger["edits_id"]:
        yield f"  it changes {trigger['edits_id']}"
    yield from (f"  {_given(delivery)}" for delivery in found["deliveries"])
    for one in found.get("memory", ()):
        yield f"  remembered {one['id']}: {render.safe(one['text'])}, {one['times']} times"
    branches = list(_branches(found, began_ms))
    for n, (head, twigs) in enumerate(branches):
        mark, below = _LAST if n == len(branches) - 1 else _BRANCH
        yield f"{mark}{head}"
        for m, twig in enumerate(twigs):
            yield f"{below}{(_LAST if m == len(twigs) - 1 else _BRANCH)[0]}{twig}"
    yield f"cost: {render.money(found['costs'])}"


def _given(delivery: Json) -> str:
    """Say to whom it went, and how that one takes it."""
    how = [_HOW.get(delivery["strategy"] or "", "at the next safe point")]
    if not delivery["wake"]:
        how = ["as context, without a wake"]
    if delivery["folded"]:
        how.append("folded into a later wake")
    if delivery["turn_id"] is None:
        how.append("not read yet")
    return f"to the {delivery['session_kind']} {delivery['session_id']}: {', '.join(how)}"


def _branches(found: Json, began_ms: int) -> Iterator[tuple[str, list[str]]]:
    """Group events: those of one turn are twigs of its branch; others stand for themselves."""
    turns = {turn["id"]: turn for turn in found["turns"]}
    twigs: dict[str, list[str]] = {}
    order: list[tuple[str, list[str]]] = []
    for event in found["events"]:
        turn = turns.get(event["turn_id"])
        line = _event(event, found, began_ms)
        if turn is None:
            order.append((line, []))
            continue
        if turn["id"] not in twigs:
            twigs[turn["id"]] = []
            order.append((_turn(turn, found, began_ms), twigs[turn["id"]]))
        twigs[turn["id"]].append(line)
    yield from order


def _turn(turn: Json, found: Json, began_ms: int) -> str:
    took = (
        "runs"
        if turn["ended_at_ms"] is None
        else _span(turn["ended_at_ms"] - turn["started_at_ms"])
    )
    kinds = {row["turn_id"]: row["session_kind"] for row in found["deliveries"]}
    who = kinds.get(turn["id"]) or "session"
    spent = render.money(turn["costs"])
    ending = f", {turn['ending']}" if turn["ending"] else ""
    at = _since(turn["started_at_ms"], began_ms)
    return f"{at} {_bold(f'turn of the {who}')} {turn['session_id']} ({took}{ending}): {spent}"


def _event(event: Json, found: Json, began_ms: int) -> str:
    said = [_bold(render.safe(event["stop"]))]
    said += _of_job(event["job_id"], found)
    said += _of_effect(event["outbox_id"], found)
    said += [
        f"{render.safe(name)}={_value(value)}"
        for name, value in (event["data"] or {}).items()
        if value is not None and value is not False
    ]
    return f"{_since(event['at_ms'], began_ms)} {' '.join(said)}"


def _of_job(job_id: str | None, found: Json) -> Iterator[str]:
    for job in found["jobs"]:
        if job["id"] == job_id:
            argv = " ".join(str(part) for part in job["spec"].get("argv", ()))
            yield f"{job_id} `{_short(argv)}`"
            if job["outcome"]:
                code = "" if job["code"] is None else f"({job['code']})"
                yield f"{render.state(job['outcome'])}{code}"


def _of_effect(outbox_id: str | None, found: Json) -> Iterator[str]:
    for effect in found["outbox"]:
        if effect["id"] == outbox_id:
            yield f"{outbox_id} {render.state(effect['state'])}"
            if effect["receipt_url"]:
                yield render.safe(effect["receipt_url"])


def _since(at_ms: int, began_ms: int) -> str:
    return click.style(f"{f'+{_span(at_ms - began_ms)}':>9}", dim=True)


def _span(ms: int) -> str:
    if ms < 1000:
        return f"{ms} ms"
    return f"{ms / 1000:.1f} s" if ms < 600_000 else f"{ms / 60_000:.0f} min"


def _value(value: object) -> str:
    return _short(", ".join(map(str, value)) if isinstance(value, list) else value)


def _short(value: object) -> str:
    text = render.safe(value)
    return text if len(text) <= OUTPUT_CHARS else f"{text[:OUTPUT_CHARS]}…"


def _bold(text: str) -> str:
    return click.style(text, bold=True)
