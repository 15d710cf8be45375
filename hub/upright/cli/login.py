"""``upright login``: a one-time link for the owner's browser; or a token for a remote hub, kept."""

from __future__ import annotations

import sys
from typing import Final

import click

from upright.cli import render
from upright.cli.client import Hub
from upright.cli.errors import CliError, Exit
from upright.cli.links import owners_link
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place, ring_name
from upright.settings import ring

MAX_TOKEN: Final = 200


@click.command()
@click.argument("url", required=False)
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the token from standard input.")
@as_json
@pass_place
def login(place: Place, url: str | None, *, from_stdin: bool, as_json: bool) -> None:
    """Print a one-time link into this machine's hub; with URL keep a token for that hub.

    A token for a remote hub is made there, by `upright token new` or on its pages; it is asked
    for, tried, and kept in the key ring. Then: export UPRIGHT_HUB=URL.
    """
    if url is None:
        link = owners_link(place.hub)
        render.emit_done({"url": link}, link, as_json=as_json)
        return
    if from_stdin:
        token = sys.stdin.read(MAX_TOKEN).strip()
    else:
        token = click.prompt(f"Token for {url}", hide_input=True).strip()
    if not token:
        raise CliError("an empty token is none; nothing was stored", Exit.USAGE)
    _keep(url.rstrip("/"), token, as_json=as_json)


def _keep(url: str, token: str, *, as_json: bool) -> None:
    me = Hub(url=url, token=token).get("v1", "me")
    ring.store(ring_name(url), token)
    said = f"You are {render.safe(me['name'])} there, {me['role']}. Now: export UPRIGHT_HUB={url}"
    render.emit_done({"url": url, "name": me["name"], "role": me["role"]}, said, as_json=as_json)
