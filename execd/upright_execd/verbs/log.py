"""`execd log`: what was asked, decided and done on this machine."""

from __future__ import annotations

import json
from typing import Any

import click

from upright_execd import shown
from upright_execd.audit import entries, first_break
from upright_execd.verbs.output import paths_of

_HEAD = ("at", "event", "seal")


@click.command("log")
@click.option("--verify", "is_verified", is_flag=True, help="Check the chain; exits 1 if it broke.")
@click.option("-n", "--lines", "count", type=click.IntRange(min=1), help="Only the last so many.")
@click.option("--jsonl", "is_jsonl", is_flag=True, help="Print JSON objects, one a line.")
@click.pass_context
def verb(ctx: click.Context, *, is_verified: bool, count: int | None, is_jsonl: bool) -> None:
    """Show the log of commands, denials, consents and changes of the rules, oldest first.

    What others wrote into it is shown quoted: nothing in it can steer the terminal.
    """
    path = paths_of(ctx).audit
    if is_verified:
        broken = first_break(path)
        if broken is None:
            click.echo(f"{path}: each line fits the one before it.")
            return
        click.echo(f"{path}: line {broken} doesn't fit the one before it.", err=True)
        ctx.exit(1)
    rows = list(entries(path))
    for row in rows[-count:] if count else rows:
        click.echo(json.dumps(row) if is_jsonl else _line(row))
    if not rows and not is_jsonl:
        click.echo("Nothing was asked of this machine yet.")


def _line(row: dict[str, Any]) -> str:
    facts = [f"{_bare(k)}={shown.value(v)}" for k, v in row.items() if k not in _HEAD]
    return " ".join([_bare(row.get("at", "?")), _bare(row.get("event", "?")), *facts])


def _bare(word: object) -> str:
    """Return a word without the quotes around it; those inside stay marked."""
    return shown.text(str(word))[1:-1]
