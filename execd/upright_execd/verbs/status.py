"""`execd status`: how the running daemon is."""

from __future__ import annotations

from typing import Any

import click

from upright_execd.ownerline import ask
from upright_execd.verbs.output import as_json, paths_of, print_json


@click.command("status")
@as_json
@click.pass_context
def verb(ctx: click.Context, *, is_json: bool) -> None:
    """Show how the running daemon is."""
    found = ask(paths_of(ctx), {"op": "status"})
    if is_json:
        print_json(found)
    else:
        click.echo("\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [
        f"execd {found['version']}, process {found['pid']}, mode {found['mode']}",
        f"link        {found['link']}",
    ]
    if found["problem"]:
        lines.append(f"problem     {found['problem']}")
    lines += [f"workspace   {row['label']}  {row['path']}" for row in found["workspaces"]]
    if not found["workspaces"] and not found["problem"]:  # a problem leaves the list unread
        lines.append("workspace   none; add one: execd workspace add PATH")
    lines += [f"command     {row['command_id']}  {row['state']}" for row in found["commands"]]
    if found["questions"]:
        lines.append(f"{found['questions']} wait for your word: execd consent")
    return lines
