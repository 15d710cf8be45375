"""The command ``upright sandbox slack``."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from upright_slack.sandbox.server import Options, running


def add_to(group: object) -> None:
    """Add the command to a click group.

    Raises:
        TypeError: it is no click group.
    """
    if not isinstance(group, click.Group):
        raise TypeError("upright_commands wants a click group")
    group.add_command(slack)


@click.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="0: any free port.")
@click.option("--bot-token", required=True, help="The token that the API accepts.")
@click.option("--app-token", default="", help="The token that opens sockets.")
@click.option("--secret", default="", help="What signs the events.")
@click.option("--hook", "hook_url", default="", help="Where events go; none: by a socket.")
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Written as JSON when the port is open.",
)
def slack(**given: object) -> None:
    """Play Slack on a loopback port: Web API, Socket Mode, signed events, faults on demand."""
    ready_file = given.pop("ready_file")
    try:
        asyncio.run(_serve(given, ready_file if isinstance(ready_file, Path) else None))
    except* OSError as errors:
        reason = f"The sandbox can't run: {errors.exceptions[0]}"
        raise click.ClickException(reason) from errors


async def _serve(given: dict[str, object], ready_file: Path | None) -> None:
    options = Options(
        bot_token=str(given["bot_token"]),
        app_token=str(given["app_token"]),
        secret=str(given["secret"]),
        port=int(str(given["port"])),
        hook_url=str(given["hook_url"]),
    )
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    async with running(options, now=_now) as sandbox:
        told = json.dumps({"url": sandbox.api_url, "control": sandbox.control})
        if ready_file is not None:
            await asyncio.to_thread(_write, ready_file, told)
        click.echo(told)
        await stop.wait()


def _write(path: Path, text: str) -> None:
    """Write at once: whoever waits for the file finds it whole."""
    part = path.with_name(path.name + ".part")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(path)


def _now() -> datetime:
    """Return the time; a ``ts`` holds whole seconds and a number."""
    return datetime(*time.gmtime()[:6], tzinfo=UTC)
