"""`execd run`: the daemon, in the foreground."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Final

import click

from upright_execd import daemon, login, settings
from upright_execd.clock import SystemClock
from upright_execd.commands import LocalCommands
from upright_execd.errors import SettingsError
from upright_execd.logs import to_stderr
from upright_execd.network import network_half, paired
from upright_execd.settings import Base, Settings
from upright_execd.verbs.output import paths_of

log: Final = logging.getLogger("upright.execd")


@click.command("run")
@click.option("--verbose", is_flag=True, help="Log more.")
@click.pass_context
def verb(ctx: click.Context, *, verbose: bool) -> None:
    """Run the daemon until it is stopped; commands that run go on without it."""
    paths = paths_of(ctx)
    found = settings.load(paths.settings)
    paired(paths)
    _check_user(found)
    to_stderr(is_verbose=verbose)

    def link(commands: LocalCommands) -> daemon.Link:
        return network_half(paths, found, commands)

    with daemon.alone(paths):
        environment = _environment(found)
        asyncio.run(daemon.serve(paths, SystemClock(), link, environment=environment))


def _check_user(found: Settings) -> None:
    if os.getuid() == 0 and not found.as_root:
        sentence = "execd would run every command as root."
        advice = "Run it as the user whose work it is, or write into execd.toml: as_root = true"
        raise SettingsError(sentence, advice=advice)


def _environment(found: Settings) -> dict[str, str]:
    own = settings.login_environment()
    if found.environment_base is Base.OWN:
        return own
    captured = login.capture(own)
    if captured is None:
        log.warning("login.unknown", extra={"instead": "the daemon's own environment"})
    return captured or own
