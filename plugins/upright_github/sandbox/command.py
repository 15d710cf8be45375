"""The command ``upright sandbox github``."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

import click

from upright_github.sandbox.server import Options, running


def add_to(group: object) -> None:
    """Add the command to a click group.

    Raises:
        TypeError: it is no click group.
    """
    if not isinstance(group, click.Group):
        raise TypeError("upright_commands wants a click group")
    group.add_command(github)


@click.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="0: any free port.")
@click.option("--token", required=True, help="The token that the API accepts.")
@click.option("--secret", required=True, help="What signs the webhooks.")
@click.option("--login", default="upright-bot", show_default=True, help="Whom the token is of.")
@click.option("--hook", "hook_url", default="", help="Where webhooks go, with --secret.")
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Written as JSON when the port is open.",
)
def github(**given: object) -> None:
    """Play GitHub on a loopback port: REST, signed webhooks, faults on demand."""
    ready_file = given.pop("ready_file")
    try:
        asyncio.run(_serve(given, ready_file if isinstance(ready_file, Path) else None))
    except* OSError as errors:
        raise click.ClickException(_said(errors)) from errors


async def _serve(given: dict[str, object], ready_file: Path | None) -> None:
    options = Options(
        token=str(given["token"]),
        secret=str(given["secret"]),
        login=str(given["login"]),
        port=int(str(given["port"])),
        hook_url=str(given["hook_url"]),
    )
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    async with running(options, now=_now, new_guid=_new_guid) as sandbox:
        told = json.dumps({"url": sandbox.url, "control": sandbox.control})
        if ready_file is not None:
            await asyncio.to_thread(_write, ready_file, told)
        click.echo(told)
        await stop.wait()


def _said(errors: BaseExceptionGroup[OSError]) -> str:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"The sandbox can't run: {error}"


def _write(path: Path, text: str) -> None:
    """Write at once: whoever waits for the file finds it whole."""
    part = path.with_name(path.name + ".part")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(path)


def _now() -> datetime:
    """Return the time in whole seconds, as GitHub tells it."""
    return datetime(*time.gmtime()[:6], tzinfo=UTC)


def _new_guid() -> str:
    return str(uuid.UUID(bytes=secrets.token_bytes(16), version=4))
