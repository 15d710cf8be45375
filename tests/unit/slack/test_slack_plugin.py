"""Both chat plugins at the door: manifest, kinds, settings, weight."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import click
import pluggy
import pytest

import upright_matrix
import upright_slack
from upright.api import API_VERSION, ENTRY_POINT_GROUP, Connector, Hooks, SecretRef
from upright.settings.errors import SettingsError
from upright.settings.parse import Place, parse
from upright_slack.settings import SlackSettings

PLACE = Place(key="sources.chat", origin="upright.toml")
SLACK = {"bot_token": "keyring:slack-bot", "app_token": "keyring:slack-app"}
MATRIX = {
    "homeserver": "https://matrix.example.org",
    "user_id": "@helper:example.org",
    "token": "keyring:matrix",
}


def manager(module: ModuleType) -> pluggy.PluginManager:
    made = pluggy.PluginManager("upright")
    made.add_hookspecs(Hooks)
    made.register(module)
    made.check_pending()
    return made


def made(module: ModuleType, **keys: object) -> Connector:
    """Make a connector as the hub does, from the keys of a source."""
    ((offered,),) = manager(module).hook.upright_connectors()
    connector: Connector = offered.make("chat", parse(offered.settings, keys, PLACE))
    return connector


@pytest.mark.parametrize("module", [upright_matrix, upright_slack], ids=lambda one: one.__name__)
def test_the_plugin_offers_the_kinds_of_its_manifest(module: ModuleType) -> None:
    assert module.__file__ is not None
    manifest = tomllib.loads(
        Path(module.__file__).with_name("upright-plugin.toml").read_text("utf-8")
    )
    (types,) = manager(module).hook.upright_connectors()
    assert [offered.kind for offered in types] == manifest["kinds"]
    assert (manifest["api"], manifest["module"]) == (API_VERSION, module.__name__)
    (found,) = entry_points(group=ENTRY_POINT_GROUP, name=manifest["name"])
    assert found.load() is module


def test_a_source_hears_by_socket_or_by_http() -> None:
    socket = made(upright_slack, **SLACK).capabilities()
    assert (socket.listens, socket.receives, socket.lists) == (True, False, False)
    http = {"bot_token": "env:B", "signing_secret": "env:S"}
    web = made(upright_slack, **http).capabilities()
    assert (web.listens, web.receives, web.lists) == (False, True, True)
    matrix = made(upright_matrix, **MATRIX).capabilities()
    assert (matrix.listens, matrix.receives, matrix.destinations) == (
        True,
        False,
        ("thread", "room"),
    )


def test_a_key_that_is_not_known_is_named_with_the_nearest() -> None:
    with pytest.raises(SettingsError, match="channels"):
        parse(SlackSettings, {**SLACK, "chanels": ["C1"]}, PLACE)
    assert parse(SlackSettings, SLACK, PLACE).app_token == SecretRef("keyring:slack-app")


def test_the_command_is_added_with_the_help_of_the_manifest() -> None:
    group = click.Group("sandbox")
    manager(upright_slack).hook.upright_commands(group=group)
    path = Path(upright_slack.__file__).with_name("upright-plugin.toml")
    manifest = tomllib.loads(path.read_text(encoding="utf-8"))
    assert group.commands["slack"].help == manifest["commands"]["sandbox slack"]
    with pytest.raises(TypeError, match="click group"):
        manager(upright_slack).hook.upright_commands(group=object())


@pytest.mark.parametrize("name", ["upright_matrix", "upright_slack"])
def test_the_module_of_the_hooks_is_light(name: str) -> None:
    code = f"import {name}, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=20
    )
    assert not {"aiohttp", "click", "asyncio", f"{name}.connector"} & set(done.stdout.split())
