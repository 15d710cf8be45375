"""Output: what verbs share: where the files are, and JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from upright_execd.errors import NotRunningError
from upright_execd.ownerline import ask
from upright_execd.paths import Paths
from upright_execd.settings import find_paths

as_json: Callable[[Any], Any] = click.option(
    "--json", "is_json", is_flag=True, help="Print one JSON object."
)


def paths_of(ctx: click.Context) -> Paths:
    """Return the paths that ``--home`` or the environment asks for."""
    home: Path | None = ctx.find_root().obj
    return find_paths(home)


def print_json(value: object) -> None:
    """Print one JSON object."""
    click.echo(json.dumps(value, indent=2))


def tell(paths: Paths) -> None:
    """Have a running daemon look at once; one that doesn't run will look when it starts."""
    try:
        ask(paths, {"op": "reload"})
    except NotRunningError:
        return
