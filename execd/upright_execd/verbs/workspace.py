"""`execd workspace`: the folders in which commands may run."""

from __future__ import annotations

from pathlib import Path

import click

from upright_execd import git, workspace
from upright_execd.settings import login_environment
from upright_execd.verbs.output import as_json, paths_of, print_json, tell


@click.group("workspace")
def verb() -> None:
    """List the folders in which commands may run."""


@verb.command("add")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--label", help="What to call it (default: the folder's name).")
@click.pass_context
def add(ctx: click.Context, path: Path, label: str | None) -> None:
    """Let commands run in PATH, and in the worktrees beside it."""
    paths = paths_of(ctx)
    added = workspace.add(paths.workspaces, path, label)
    tell(paths)
    click.echo(f"{added.label}  {added.path}")
    for remote in git.remotes(added.path, login_environment()):
        click.echo(f"  {remote}")


@verb.command("ls")
@as_json
@click.pass_context
def ls(ctx: click.Context, *, is_json: bool) -> None:
    """Show the listed folders with their git remotes."""
    rows = [
        {
            "label": row.label,
            "path": str(row.path),
            "is_in_place": workspace.is_in_place(row),
            "remotes": list(git.remotes(row.path, login_environment())),
        }
        for row in workspace.listed(paths_of(ctx).workspaces)
    ]
    if is_json:
        print_json({"workspaces": rows})
        return
    for row in rows:
        missing = "" if row["is_in_place"] else "  (not there, or moved: not announced)"
        click.echo(f"{row['label']}  {row['path']}{missing}")
    if not rows:
        click.echo("No workspaces. Add one: execd workspace add PATH")


@verb.command("rm")
@click.argument("name")
@click.pass_context
def rm(ctx: click.Context, name: str) -> None:
    """Take the folder with this path or label off the list; its files stay."""
    paths = paths_of(ctx)
    removed = workspace.remove(paths.workspaces, name)
    tell(paths)
    click.echo(f"{removed.label}  {removed.path} is no workspace any more.")
