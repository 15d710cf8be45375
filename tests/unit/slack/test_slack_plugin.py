"""Both chat plugins at the door: manifest, kinds, settings, weight."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click
import pluggy
import pytest

import upright_matrix
import upright_slack
from upright.api import (
    API_VERSION,
    ENTRY_POINT_GROUP,
    ActorKind,
    Connector,
    Hooks,
    SecretRef,
)
from upright.compose.notify import check_notify
from upright.plugin.connectors import declared
from upright.plugin.manifest import installed, listed
from upright.settings.errors import SettingsError
from upright.settings.parse import Place, parse
from upright.settings.shape import PersonSection, Settings, SourceSection
from upright_slack.settings import SlackSettings

KEYS: Final[dict[str, dict[str, Any]]] = {
    "slack": {"bot_token": "keyring:slack-bot", "app_token": "keyring:slack-app"},
    "matrix": {
        "homeserver": "https://matrix.example.org",
        "user_id": "@helper:example.org",
        "token": "keyring:matrix",
    },
    "webhook": {"scheme": "standard", "secret": "env:S", "map": {"kind": "k", "thread": "t"}},
}
PLACE = Place(key="sources.chat", origin="upright.toml")
SLACK = KEYS["slack"]
MATRIX = KEYS["matrix"]


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


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    ("connector", "answers"),
    [("slack", True), ("matrix", True), ("webhook", False)],
)
def test_chat_alone_vouches_for_its_authors(connector: str, *, answers: bool) -> None:
    sources = {"s": SourceSection(connector=connector, keys=KEYS[connector])}
    able = declared(sources, listed(installed()), file="upright.toml")["s"]
    assert able.answers is answers
    assert ("room" in able.destinations) is answers


@pytest.mark.clause("B14.4")
@pytest.mark.parametrize(("connector", "works"), [("slack", True), ("webhook", False)])
def test_whoever_is_to_be_told_where_nothing_can_be_said_stops_the_hub_with_one_sentence(
    tmp_path: Path, connector: str, *, works: bool
) -> None:
    people = {"ada": PersonSection(kind=ActorKind.OPERATOR, ids=(), notify="s:R1")}
    sources = {"s": SourceSection(connector=connector, keys=KEYS[connector])}
    file = tmp_path / "upright.toml"
    settings = Settings(home=tmp_path, file=file, sources=sources, people=people)
    able = declared(sources, listed(installed()), file=str(file))
    if works:
        check_notify(settings, able)
        return
    said = f"in {file}: s can't notify anybody: webhook sends no message to a room"
    with pytest.raises(SettingsError, match=re.escape(said)):
        check_notify(settings, able)
    check_notify(settings, {})  # what can't be loaded says so itself


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
