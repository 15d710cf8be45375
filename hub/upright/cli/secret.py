"""``upright secret``: secrets go into the key ring, never into the configuration."""

from __future__ import annotations

import sys
from typing import Final

import click

from upright.cli.errors import CliError, Exit
from upright.settings import ring
from upright.settings.secrets import MAX_SECRET_BYTES

ENDS: Final = "\r\n"


@click.group()
def secret() -> None:
    """Store secrets in the key ring."""


@secret.command(name="set")
@click.argument("name")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read it from standard input.")
def set_(name: str, from_stdin: bool) -> None:
    """Store a secret under NAME; it is asked for, and not shown."""
    if from_stdin:
        value = sys.stdin.read(MAX_SECRET_BYTES).rstrip(ENDS)
    else:
        value = click.prompt(f"Secret for {name}", hide_input=True)
    if not value:
        raise CliError("an empty secret is none; nothing was stored", Exit.USAGE)
    ring.store(name, value)
    click.echo(f'Stored. Write "keyring:{name}" where the configuration wants it.')
