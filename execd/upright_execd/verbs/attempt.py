"""`execd try`: run a command here by hand, by the rules that hold for the hub's."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, Final

import click

from upright_execd.clock import Clock, SystemClock
from upright_execd.errors import RemoteError
from upright_execd.ownerline import ask
from upright_execd.paths import Paths
from upright_execd.shim.records import STREAMS
from upright_execd.verbs.output import paths_of
from upright_wire.spec import Confinement

LOOK_EVERY_S: Final = 0.1
SHOWN_BYTES: Final = 64 * 1024


@click.command("try", context_settings={"ignore_unknown_options": True})
@click.option(
    "--confinement",
    type=click.Choice([one.value for one in Confinement]),
    default=Confinement.WORKSPACE.value,
    show_default=True,
)
@click.option("--cwd", type=click.Path(path_type=Path), default=".", help="Where (default: here).")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def verb(ctx: click.Context, *, confinement: str, cwd: Path, argv: tuple[str, ...]) -> None:
    """Run ARGV as if the hub had sent it, and say what became of it; the hub hears nothing."""
    paths = paths_of(ctx)
    order = {"op": "try", "argv": argv, "cwd": str(cwd.absolute()), "confinement": confinement}
    command_id = ask(paths, order)["command_id"]
    try:
        outcome = asyncio.run(_end(paths, command_id, SystemClock()))
    except KeyboardInterrupt:
        ask(paths, {"op": "give_up", "command_id": command_id})
        raise
    folder = paths.commands / "open" / command_id
    for name, stream in zip(STREAMS, (sys.stdout, sys.stderr), strict=True):
        if (folder / name).exists():
            with (folder / name).open("rb") as file:
                stream.buffer.write(file.read(SHOWN_BYTES))
            stream.flush()
    ask(paths, {"op": "forget", "command_id": command_id})
    said = [outcome["ending"], *(str(outcome[k]) for k in ("number", "text") if k in outcome)]
    click.echo(f"{command_id}: {' '.join(said)}", err=True)
    ctx.exit(0 if said[:2] == ["exited", "0"] else 1)


async def _end(paths: Paths, command_id: str, clock: Clock) -> dict[str, Any]:
    """Wait for the end and return it; say so once when it is the owner who is waited for."""
    is_told = False
    while True:
        found = await asyncio.to_thread(_look, paths, command_id)
        if found["state"] == "final":
            outcome: dict[str, Any] = found["outcome"]
            return outcome
        if found["state"] == "awaiting_consent" and not is_told:
            is_told = True
            click.echo("It waits for your word. In another terminal: execd consent", err=True)
        await clock.sleep(LOOK_EVERY_S)


def _look(paths: Paths, command_id: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = ask(paths, {"op": "tried", "command_id": command_id})["snapshot"]
    except RemoteError:  # it is not taken up yet
        return {"state": "received"}
    return found
