"""The command ``upright sandbox slack``."""

from __future__ import annotations

from pathlib import Path

import click

from upright.kit.playing import now, play
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
def slack(*, ready_file: Path | None, **given: object) -> None:
    """Play Slack on a loopback port: Web API, Socket Mode, signed events, faults on demand."""
    options = Options(
        bot_token=str(given["bot_token"]),
        app_token=str(given["app_token"]),
        secret=str(given["secret"]),
        port=int(str(given["port"])),
        hook_url=str(given["hook_url"]),
    )
    why = play(
        running(options, now=now),
        lambda one: {"url": one.api_url, "control": one.control},
        ready_file=ready_file,
        say=click.echo,
    )
    if why:
        raise click.ClickException(why)
