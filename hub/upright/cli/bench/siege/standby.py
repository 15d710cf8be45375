"""Standby: ``upright serve`` with all imports done, which begins when a file says go."""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from upright import logs
from upright.cli.bench.doomed import told_to_go
from upright.cli.place import Place
from upright.compose.serve import serve
from upright.engine.clock import SystemClock

MODEL_CLIENT: Final = "upright.llm.wire"
"""A hub loads it behind its start, for its weight; a life of two seconds would never call it."""


@click.command()
@click.option("--go", type=click.Path(path_type=Path, dir_okay=False), required=True)
def main(go: Path) -> None:
    """Run the hub of UPRIGHT_HOME once the file GO is there, until it is killed."""
    import_module(MODEL_CLIENT)
    place = Place()
    if asyncio.run(told_to_go(go, SystemClock())):
        logs.set_up(level=place.settings.logs.level, style=place.settings.logs.format)
        serve(place.settings, place.env, ready=click.echo)


if __name__ == "__main__":
    main()
