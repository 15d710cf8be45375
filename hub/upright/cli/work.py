"""``upright work``: what is being done, what each item waits for, and what it cost."""

from __future__ import annotations

from typing import Any

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms


@click.group()
def work() -> None:
    """List and show work items; cancel or unblock one."""


@work.command()
@click.option("--all", "everything", is_flag=True, help="With what has ended.")
@as_json
@pass_place
def ls(place: Place, everything: bool, as_json: bool) -> None:
    """List work items, the last changed first."""
    rows = place.hub.get("v1", "work", open=None if everything else 1)
    if as_json:
        render.emit_json(rows)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("ID", lambda row: row["id"]),
        ("STATE", lambda row: render.state(row["state"])),
        ("CHANGED", lambda row: render.age(row["changed_at_ms"], now)),
        ("WAITS FOR", _waits_for),
        ("GOAL", lambda row: row["goal"]),
    )
    empty = "No work item yet." if everything else "No open work item; --all shows the rest."
    render.emit_table(rows, columns, empty=empty)


def _waits_for(row: render.Row) -> str:
    said = [f"{wait['kind']}: {_why(wait)}" for wait in row["waits"]]
    said += [f"you: {question['prompt']}" for question in row["questions"]]
    return "; ".join(said) or row["reason"]


def _why(wait: render.Row) -> str:
    held = wait.get("held_by")
    return f"{wait['why']}, which waits for {held}" if held else str(wait["why"])


@work.command()
@click.argument("wanted", metavar="ID")
@click.option("--to", "device", required=True, metavar="DEVICE", help="The device's whole id.")
@as_json
@pass_place
def move(place: Place, wanted: str, device: str, as_json: bool) -> None:
    """Let a work item go on at another device, in a new worktree."""
    done = place.hub.post("v1", "work", wanted, "move", device=device)
    render.emit_done(done, f"{done['work']} goes on at {done['device']}.", as_json=as_json)


@work.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def show(place: Place, wanted: str, as_json: bool) -> None:
    """Show a work item: plan, evidence, waits, jobs, replies, cost."""
    it: dict[str, Any] = place.hub.get("v1", "work", wanted)
    if as_json:
        render.emit_json(it)
        return
    spent = it.pop("costs")
    render.emit_fields(it)
    click.echo(f"cost: {render.money(spent)}")


@work.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def cancel(place: Place, wanted: str, as_json: bool) -> None:
    """Cancel a work item and its children, for good."""
    done = place.hub.post("v1", "work", wanted, "cancel")
    render.emit_done(done, f"Cancelled {done['work']}.", as_json=as_json)


@work.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def unblock(place: Place, wanted: str, as_json: bool) -> None:
    """Let a blocked item go on; its question is withdrawn."""
    done = place.hub.post("v1", "work", wanted, "unblock")
    render.emit_done(done, f"{done['work']} goes on.", as_json=as_json)


@work.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def private(place: Place, wanted: str, as_json: bool) -> None:
    """Let nobody but you see an item that you have opened, and all that is its own."""
    done = place.hub.post("v1", "work", wanted, "private")
    render.emit_done(done, f"{done['work']} is yours alone.", as_json=as_json)


@work.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def share(place: Place, wanted: str, as_json: bool) -> None:
    """Let everybody see an item of yours again."""
    done = place.hub.post("v1", "work", wanted, "share")
    render.emit_done(done, f"{done['work']} is everybody's.", as_json=as_json)
