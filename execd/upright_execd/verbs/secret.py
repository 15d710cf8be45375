"""`execd secret`: what commands may be given without the hub ever seeing it."""

from __future__ import annotations

import sys

import click

from upright_execd.vault import Vault
from upright_execd.verbs.output import as_json, paths_of, print_json


@click.group("secret")
def verb() -> None:
    """Keep secrets here that a command may ask for by name."""


@verb.command("set")
@click.argument("name")
@click.option("--file", "is_file", is_flag=True, help="Keep it in a file (0600), not the keyring.")
@click.pass_context
def keep(ctx: click.Context, *, name: str, is_file: bool) -> None:
    """Keep a secret under NAME; its value is asked for, or read from standard input."""
    if sys.stdin.isatty():
        value = click.prompt("Value", hide_input=True, confirmation_prompt=True)
    else:
        value = sys.stdin.read().rstrip("\n")
    vault = _vault(ctx)
    vault.keep(name, value, in_file=is_file)
    if is_file:
        click.echo("It lies unencrypted in a file of yours; keep that to yourself.", err=True)
    click.echo(f"{name} is kept. Commands that ask for it are shown to you in mode ask.")


@verb.command("ls")
@as_json
@click.pass_context
def ls(ctx: click.Context, *, is_json: bool) -> None:
    """Show the names."""
    names = _vault(ctx).names()
    if is_json:
        print_json({"secrets": list(names)})
        return
    for name in names:
        click.echo(name)
    if not names:
        click.echo("No secrets. Keep one: execd secret set NAME")


@verb.command("rm")
@click.argument("name")
@click.pass_context
def rm(ctx: click.Context, name: str) -> None:
    """Forget a secret."""
    _vault(ctx).drop(name)
    click.echo(f"{name} is gone.")


def _vault(ctx: click.Context) -> Vault:
    return Vault(paths_of(ctx).secrets)
