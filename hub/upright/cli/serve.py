"""``upright serve`` and ``upright up``: the hub as a process; SIGTERM drains it."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import click

from upright import logs
from upright.cli.client import Hub
from upright.cli.errors import CliError, Exit
from upright.cli.init import make_home
from upright.cli.links import owners_link
from upright.cli.place import Place, pass_place
from upright.settings.home import Home, write_private
from upright.settings.shape import LogFormat

_host = click.option("--host", help="Where to listen (default: the configuration's).")
_port = click.option("--port", type=click.IntRange(0, 65_535), help="0 takes a free one.")
_log_format = click.option(
    "--log-format", type=click.Choice([each.value for each in LogFormat]), help="How logs look."
)
_ready_file = click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Gets the hub's address once it listens.",
)


@click.command()
@_host
@_port
@_log_format
@_ready_file
@pass_place
def serve(
    place: Place,
    *,
    host: str | None,
    port: int | None,
    log_format: str | None,
    ready_file: Path | None,
) -> None:
    """Run the hub until SIGTERM or Ctrl-C; what runs then reaches a safe point first."""
    _take_flags(place, host, port, log_format)
    _run(place, ready_file)


@click.command()
@_host
@_port
@_log_format
@_ready_file
@pass_place
def up(
    place: Place,
    *,
    host: str | None,
    port: int | None,
    log_format: str | None,
    ready_file: Path | None,
) -> None:
    """Set up what is missing, serve, and say how to pair a machine."""
    _take_flags(place, host, port, log_format)
    for made in make_home(place):
        click.echo(f"made {made}", err=True)
    _run(place, ready_file, greet=True)


def _take_flags(place: Place, host: str | None, port: int | None, log_format: str | None) -> None:
    place.flags.update({"hub.host": host, "hub.port": port, "logs.format": log_format})


def _run(place: Place, ready_file: Path | None, *, greet: bool = False) -> None:
    from upright.compose.serve import serve as run_hub  # noqa: PLC0415  # a wrong setting is said before all the weight

    settings = place.settings

    def ready(url: str) -> None:
        if ready_file is not None:
            write_private(ready_file, url.encode())
        if greet:
            _greet(place, url)
            threading.Thread(
                target=_welcome, args=(place, url), name="welcome", daemon=True
            ).start()

    logs.set_up(level=settings.logs.level, style=settings.logs.format)
    try:
        run_hub(settings, place.env, ready=ready)
    except OSError as error:
        refused = address_refused(error, f"{settings.hub.host}:{settings.hub.port}")
        if refused is None:
            raise
        raise refused from error


def address_refused(error: OSError, where: str) -> CliError | None:
    """Return what to say when an address can't be listened on; None: it is about something else.

    A file that can't be read has a name in its error, an address has none.
    """
    refusals = {errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES}
    if error.errno not in refusals or error.filename is not None:
        return None
    said = f"can't listen on {where}: {os.strerror(error.errno or 0)}"
    advice = "stop what listens there, or choose another hub.port or --port"
    return CliError(f"{said}; {advice}", Exit.FAILED)


def _welcome(place: Place, url: str) -> None:
    """Ask the hub that serves now for a one-time link: a person's first way in."""
    try:
        said = owners_link(Hub(url=url, token=place.token()))
    except CliError as error:  # the hub may have ended before it could answer
        said = str(error)
    click.echo(f"  sign in  {said}", err=True)


def _greet(place: Place, url: str) -> None:
    settings = place.settings
    model = settings.model.base_url or "none: what needs one is held for you (set [model])"
    token = Home(folder=settings.state_dir).token
    named = ", ".join(settings.sources) or f"none yet: name one in {settings.file}"
    for line in (
        f"Upright serves at {url}",
        f"  model    {model}",
        f"  sources  {named}",
        f"  device   on the machine that has the code: execd pair {url}",
        "           then here: upright device approve CODE",
        f"           your own, this one: execd pair {url} --token-file {token}",
        "  look     upright inbox --watch",
    ):
        click.echo(line, err=True)
