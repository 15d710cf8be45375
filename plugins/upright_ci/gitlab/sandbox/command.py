"""The command ``upright sandbox gitlab``."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import time
import uuid
from datetime import UTC, datetime

import click

from upright_ci.gitlab.sandbox.server import Options, running


def add_to(group: object) -> None:
    """Add the command to a click group.

    Raises:
        TypeError: it is no click group.
    """
    if not isinstance(group, click.Group):
        raise TypeError("upright_commands wants a click group")
    group.add_command(gitlab)


@click.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="0: any free port.")
@click.option("--token", required=True, help="The token that the API accepts.")
@click.option("--secret", required=True, help="What webhooks show in X-Gitlab-Token.")
@click.option("--login", default="upright-bot", show_default=True, help="Whom the token is of.")
@click.option("--hook", "hook_url", default="", help="Where webhooks go, with --secret.")
def gitlab(**given: str) -> None:
    """Play GitLab on a loopback port: REST, webhooks, faults on demand."""
    options = Options(
        token=given["token"],
        secret=given["secret"],
        login=given["login"],
        port=int(given["port"]),
        hook_url=given["hook_url"],
    )
    try:
        asyncio.run(_serve(options))
    except OSError as error:
        said = f"The sandbox can't run: {error}"
        raise click.ClickException(said) from error


async def _serve(options: Options) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    async with running(options, now=_now, new_guid=_new_guid) as sandbox:
        click.echo(json.dumps({"url": sandbox.url, "control": f"{sandbox.url}/_sandbox"}))
        await stop.wait()


def _now() -> datetime:
    return datetime(*time.gmtime()[:6], tzinfo=UTC)


def _new_guid() -> str:
    return str(uuid.UUID(bytes=secrets.token_bytes(16), version=4))
