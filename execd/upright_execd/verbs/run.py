"""`execd run`: the daemon, in the foreground."""

from __future__ import annotations

import asyncio

import click

from upright_execd import daemon, settings
from upright_execd.clock import SystemClock
from upright_execd.commands import LocalCommands
from upright_execd.logs import to_stderr
from upright_execd.network import network_half, paired
from upright_execd.verbs.output import paths_of


@click.command("run")
@click.option("--verbose", is_flag=True, help="Log more.")
@click.pass_context
def verb(ctx: click.Context, *, verbose: bool) -> None:
    """Run the daemon until it is stopped; commands that run go on without it."""
    paths = paths_of(ctx)
    found = settings.load(paths.settings)
    paired(paths)
    to_stderr(is_verbose=verbose)

    def link(commands: LocalCommands) -> daemon.Link:
        return network_half(paths, found, commands)

    with daemon.alone(paths):
        asyncio.run(daemon.serve(paths, SystemClock(), link))
