"""``upright model``: probe the endpoint that is configured, or any; serve a scripted one."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from pathlib import Path

import click

from upright.cli import probing, render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms
from upright.llm.scripted.demo import demo_script
from upright.llm.scripted.errors import ScriptError
from upright.llm.scripted.serve import serve

group = click.Group(name="model", help="The model's endpoint, and a scripted one.")


@group.command(name="probe")
@click.option("--role", default="worker", show_default=True, help="Whose endpoint is asked.")
@click.option("--url", help="Another endpoint than the configured one: http://HOST/v1")
@click.option("--name", help="The model there.")
@click.option("--key", metavar="REFERENCE", help="Its key: keyring:NAME, env:NAME or file:PATH.")
@as_json
@pass_place
def probe_command(place: Place, /, role: str, as_json: bool, **other: str | None) -> None:
    """Ask an endpoint what it can do, and say what degrades where it can't (about eight calls).

    The running hub does it and keeps what it finds; without one, or with --url, it is only shown.
    """
    elsewhere = {option: given for option, given in other.items() if given}
    found = probing.alone(place, role, **elsewhere) if elsewhere else probing.by_hub(place, role)
    if as_json:
        render.emit_json(found)
        return
    click.echo(render.safe(f"{found['base_url']} as {found['model']}"))
    for ability, has in found["can"].items():
        mark = click.style("✓", fg="green") if has else click.style("✗", fg="red")
        click.echo(f"{mark} {ability.replace('_', ' ')}")
    for sentence in found["lacks"]:
        click.echo(render.safe(sentence))


@group.command(name="ls")
@as_json
@pass_place
def list_command(place: Place, as_json: bool) -> None:
    """List the endpoints that the hub knows, and which of them is held."""
    rows = place.hub.get("v1", "models")
    if as_json:
        render.emit_json(rows)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("ENDPOINT", lambda row: row["base_url"]),
        ("PROBED", lambda row: render.age(row["probed_at_ms"], now)),
        ("LACKS", lambda row: ", ".join(n for n, has in (row["probe"] or {}).items() if not has)),
        ("HELD", lambda row: row["held_reason"] or "-"),
    )
    render.emit_table(rows, columns, empty="Nothing is known yet: upright model probe")


@group.command(name="retry")
@as_json
@pass_place
def retry_command(place: Place, as_json: bool) -> None:
    """Close the breaker that a refused key or bill opened: what waits tries again."""
    done = place.hub.post("v1", "models", "retry")
    render.emit_done(done, f"Trying again; {done['woken']} sessions go on.", as_json=as_json)


@group.command(name="serve")
@click.option(
    "--script",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The script (TOML); without it, the demo's own.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=0, show_default=True, help="0 takes a free one.")
@click.option(
    "--lacks",
    default="",
    metavar="A,B",
    help="What it can't do: streaming, tools, parallel, schema, json, forced_tool, usage, cached.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Gets the base URL once the server answers.",
)
def serve_command(
    script: Path | None, host: str, port: int, *, lacks: str, ready_file: Path | None
) -> None:
    """Serve a deterministic, OpenAI-compatible model until interrupted."""
    ready = Listening(host=host, port=port, ready_file=ready_file)
    try:
        asyncio.run(_until_signalled(ready, script or demo_script(), lacks))
    except ScriptError as error:
        message = f"the script can't be used: {error}"
        raise click.UsageError(message) from error
    except OSError as error:
        message = f"can't listen on {host}:{port}: {error.strerror}"
        raise click.ClickException(message) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where to listen, and which file is told."""

    host: str
    port: int
    ready_file: Path | None


async def _until_signalled(at: Listening, script: Path, lacks: str) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    missing = frozenset(filter(None, (name.strip() for name in lacks.split(","))))
    await serve(script, at.host, at.port, at.ready_file, stop=stop, lacks=missing)
