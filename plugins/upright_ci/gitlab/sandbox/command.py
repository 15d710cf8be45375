"""The command ``upright sandbox gitlab``."""

from __future__ import annotations

from pathlib import Path

import click

from upright.kit.playing import new_guid, now, play
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
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Written as JSON when the port is open.",
)
def gitlab(*, ready_file: Path | None, **given: object) -> None:
    """Play GitLab on a loopback port: REST, webhooks, faults on demand."""
    options = Options(
        token=str(given["token"]),
        secret=str(given["secret"]),
        login=str(given["login"]),
        port=int(str(given["port"])),
        hook_url=str(given["hook_url"]),
    )
    why = play(
        running(options, now=now, new_guid=new_guid),
        lambda one: {"url": one.url, "control": f"{one.url}/_sandbox"},
        ready_file=ready_file,
        say=click.echo,
    )
    if why:
        raise click.ClickException(why)
