"""``upright model``: the scripted model server."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from upright.llm.scripted.demo import demo_script
from upright.llm.scripted.errors import ScriptError
from upright.llm.scripted.serve import serve

group = click.Group(name="model", help="The scripted model server.")


@group.command(name="serve")
@click.option(
    "--script",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The script (TOML); without it, the demo's own.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=0, show_default=True, help="0 takes a free one.")
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Gets the base URL once the server answers.",
)
def serve_command(script: Path | None, host: str, port: int, ready_file: Path | None) -> None:
    """Serve a deterministic, OpenAI-compatible model until interrupted."""
    try:
        asyncio.run(_until_signalled(script or demo_script(), host, port, ready_file))
    except ScriptError as error:
        message = f"the script can't be used: {error}"
        raise click.UsageError(message) from error
    except OSError as error:
        message = f"can't listen on {host}:{port}: {error.strerror}"
        raise click.ClickException(message) from error


async def _until_signalled(script: Path, host: str, port: int, ready_file: Path | None) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await serve(script, host, port, ready_file, stop=stop)
