"""`execd rules`: what the owner lets run unasked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from upright_execd import argvrules, shown
from upright_execd.argvrules import ArgvRule
from upright_execd.errors import NotFoundError
from upright_execd.paths import Paths
from upright_execd.settings import login_environment
from upright_execd.verbs.output import as_json, paths_of, print_json, tell
from upright_wire.spec import Confinement


@click.group("rules")
def verb() -> None:
    """Let commands run unasked that a question would be asked about."""


@verb.command("ls")
@as_json
@click.pass_context
def ls(ctx: click.Context, *, is_json: bool) -> None:
    """Show the rules, numbered."""
    rules = argvrules.listed(paths_of(ctx).rules)
    if is_json:
        print_json({"rules": [argvrules.as_row(rule) for rule in rules]})
        return
    for number, rule in enumerate(rules, start=1):
        click.echo(f"{number}  {_shown(rule)}")
    if not rules:
        click.echo("No rules. Add one: execd rules add PROGRAM ARGUMENT…")


@verb.command("add", context_settings={"ignore_unknown_options": True})
@click.option("--cwd", type=click.Path(path_type=Path), help="Only in this folder.")
@click.option("--confinement", type=click.Choice([c.value for c in Confinement]))
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def add(
    ctx: click.Context, *, cwd: Path | None, confinement: str | None, argv: tuple[str, ...]
) -> None:
    """Let ARGV run unasked, from its program on.

    The word * stands for one argument, and ** at the end for all that follow.
    """
    found = shutil.which(argv[0], path=login_environment().get("PATH"))
    if found is None:
        sentence = f"There is no program {argv[0]}."
        raise NotFoundError(sentence, advice="Name it by its path.")
    rule = ArgvRule(
        program=os.path.realpath(found),
        argv=argv,
        cwd="" if cwd is None else str(cwd.resolve()),
        confinement=None if confinement is None else Confinement(confinement),
    )
    _change(paths_of(ctx), rule)
    click.echo(_shown(rule))


@verb.command("rm")
@click.argument("number", type=int)
@click.pass_context
def rm(ctx: click.Context, number: int) -> None:
    """Take the rule with this number off the list."""
    paths = paths_of(ctx)
    removed = argvrules.remove(paths.rules, number)
    tell(paths)
    click.echo(f"no more: {_shown(removed)}")


def _change(paths: Paths, rule: ArgvRule) -> None:
    argvrules.add(paths.rules, rule)
    tell(paths)


def _shown(rule: ArgvRule) -> str:
    where = f" in {shown.text(rule.cwd)}" if rule.cwd else ""
    how = f" as {rule.confinement}" if rule.confinement else ""
    return f"{shown.argv(rule.argv)} ({shown.text(rule.program)}){where}{how}"
