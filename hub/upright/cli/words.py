"""``upright session interrupt`` and ``ask``: a word that can't wait, one that is answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from upright.cli import render
from upright.cli.client import Happened
from upright.cli.errors import CliError, Exit
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place


@click.command()
@click.argument("wanted", metavar="ID")
@click.argument("text")
@as_json
@pass_place
def interrupt(place: Place, wanted: str, text: str, as_json: bool) -> None:
    """Tell a session something at once; what it does is cut short."""
    done = place.hub.post("v1", "sessions", wanted, "interrupt", text=text)
    if as_json:
        render.emit_json(done)
    else:
        click.echo(f"Interrupted. Follow it: upright session tail -f {wanted}")


@click.command()
@click.argument("wanted", metavar="ID")
@click.argument("question")
@as_json
@pass_place
def ask(place: Place, wanted: str, question: str, as_json: bool) -> None:
    """Ask a session something, wait, and print its answer; its work goes on meanwhile."""
    seq = place.hub.newest()
    asked = place.hub.post("v1", "sessions", wanted, "ask", text=question)
    said = _answer(place, place.hub.events(seq), asked)
    if as_json:
        render.emit_json({**asked, **said})
    else:
        click.echo(render.safe(said["answer"], lines=True))


def _answer(
    place: Place, events: Iterator[Happened], asked: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Wait for a side step's answer, or for what the turn says that took the question."""
    turn, after = "", 0
    for event in events:
        told = event.data
        if told["trigger_id"] == asked["trigger"] and event.stop == "side.answered":
            return {"answer": told["data"]["answer"], "ran_in_parallel": True}
        if told["trigger_id"] == asked["trigger"] and event.stop == "turn.took":
            turn, after = told["turn_id"], told["data"]["entry"]
        if not turn or told["turn_id"] != turn:
            continue
        said = _said(place, told["session_id"], after)
        if said:
            return {"answer": said, "ran_in_parallel": False}
        if event.stop == "turn.ended":
            break
    raise CliError("it took the question, and said nothing to it", Exit.ENDED_BADLY)


def _said(place: Place, session: str, after: int) -> str:
    """Return the first words that a session said behind an entry; empty without any."""
    entries = place.hub.get("v1", "sessions", session, "entries", after=after, limit=200)
    texts = (e["message"]["text"] for e in entries if e["message"]["role"] == "assistant")
    return next((str(text) for text in texts if text), "")
