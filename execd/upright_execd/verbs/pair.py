"""`execd pair`: make this machine known to a hub."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from upright_execd import nearby, network, pinned, settings
from upright_execd.address import HubAddress, read_address
from upright_execd.confinement import caps, enforceable
from upright_execd.errors import ExecdError
from upright_execd.keys import DeviceKey, KeyFile, KeyStore, new_private_key
from upright_execd.pairing import PairParts, Shown, pair
from upright_execd.paths import Paths, make_private
from upright_execd.verbs.output import paths_of


class AlreadyPairedError(ExecdError):
    """This machine has a hub."""

    code = "execd.already_paired"
    exit_code = 4


@click.command("pair")
@click.argument("hub")
@click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep the key in this file (0600) instead of the keyring.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The api.token of your own hub on this machine: it approves, nobody is asked.",
)
@click.option("--replace", "is_replaced", is_flag=True, help="Give up the hub there is now.")
@click.option("--jsonl", "is_jsonl", is_flag=True, help="Print JSON objects, one a line.")
@click.pass_context
def verb(
    ctx: click.Context,
    *,
    hub: str,
    key_file: Path | None,
    token_file: Path | None,
    is_replaced: bool,
    is_jsonl: bool,
) -> None:
    """Pair this machine with HUB, and wait until a person has approved it there."""
    paths, address = paths_of(ctx), read_address(hub)
    _check_free(paths, is_replaced=is_replaced)
    approve = None if token_file is None else _by_token(address, token_file)
    where = None if key_file is None else str(key_file.absolute())
    store = network.key_store(where)
    make_private(paths.config)
    parts = PairParts(
        address=address,
        key=_key(store),
        caps=caps(enforceable()),
        facts=network.facts(),
        times=network.times(settings.load(paths.settings)),
        uniform=secrets.SystemRandom().uniform,
        show=_shown(is_jsonl=is_jsonl, is_asked=approve is None),
        approve=approve,
    )
    if isinstance(store, KeyFile):
        click.echo(store.warning, err=True)
    done = replace(asyncio.run(pair(parts)), key_file=where)
    network.remember(paths, done)
    if is_jsonl:
        click.echo(json.dumps({"device_id": done.device_id, "hub_id": done.hub_id}))
    else:
        click.echo(f"Paired with {done.host} as {done.device_id}. Start it: execd run")


def _check_free(paths: Paths, *, is_replaced: bool) -> None:
    there = pinned.load(paths.pairing)
    if there is not None and not is_replaced:
        sentence = f"This machine is paired with {there.host}."
        raise AlreadyPairedError(sentence, advice="To give that up: execd pair --replace HUB")


def _key(store: KeyStore) -> DeviceKey:
    """Return this machine's key; it is made when there is none."""
    private = store.load()
    if private is None:
        private = new_private_key()
        store.save(private)
    return DeviceKey(private)


def _by_token(address: HubAddress, file: Path) -> Callable[[Shown], None]:
    """Return what approves at a hub on this machine, as the owner of its token file may."""
    nearby.check_here(address)
    token = nearby.read_token(file)
    return lambda shown: nearby.approve(address, token, shown)


def _shown(*, is_jsonl: bool, is_asked: bool) -> Callable[[Shown], None]:
    if is_jsonl:
        return _show_json
    return _show if is_asked else _show_nothing


def _show_nothing(_shown: Shown) -> None:
    """Where nobody is asked, nobody compares."""


def _show(shown: Shown) -> None:
    minutes = round(shown.expires_s / 60)
    click.echo(f"On the hub: upright device approve {shown.code}")
    click.echo(f"It shows the digits {shown.digits}. Approve only if they are the same there.")
    click.echo(f"Waiting; the code is good for {minutes} minutes.")


def _show_json(shown: Shown) -> None:
    row = {"code": shown.code, "digits": shown.digits, "hub_id": shown.hub_id}
    click.echo(json.dumps(row | {"expires_s": shown.expires_s}))
