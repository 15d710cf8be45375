"""`execd revoke`: end this machine's pairing from its own side."""

from __future__ import annotations

import click

from upright_execd import network
from upright_execd.daemon import alone
from upright_execd.spool import orphans
from upright_execd.verbs.output import paths_of


@click.command("revoke")
@click.pass_context
def verb(ctx: click.Context) -> None:
    """Wipe this machine's key and its pairing, and end what runs; the daemon must be stopped.

    Receipts stay.
    """
    paths = paths_of(ctx)
    hub = network.paired(paths)
    with alone(paths):
        network.forget(paths, by="owner")
        ended = orphans.end_all(paths.commands)
    if ended:
        click.echo(f"Commands that ran are being ended: {ended}")
    click.echo(f"The key for {hub.host} is gone. There: upright device revoke {hub.device_id}")
