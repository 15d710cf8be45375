from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import click
import pluggy
import pytest

import upright_github
from fixtures.github import Changed, settings
from upright.api import API_VERSION, ENTRY_POINT_GROUP, Hooks
from upright_github.settings import GitHubSettings

MANIFEST = Path(upright_github.__file__).with_name("upright-plugin.toml")


@pytest.fixture
def plugins() -> pluggy.PluginManager:
    manager = pluggy.PluginManager("upright")
    manager.add_hookspecs(Hooks)
    manager.register(upright_github)
    manager.check_pending()
    return manager


def test_the_entry_point_names_the_module_of_the_hooks() -> None:
    (found,) = entry_points(group=ENTRY_POINT_GROUP, name="github")
    assert found.load() is upright_github


def test_the_plugin_offers_the_kinds_of_its_manifest(plugins: pluggy.PluginManager) -> None:
    manifest = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))
    (types,) = plugins.hook.upright_connectors()
    assert [offered.kind for offered in types] == manifest["kinds"]
    assert manifest["api"] == API_VERSION
    assert manifest["module"] == upright_github.__name__


def test_a_connector_is_made_from_a_name_and_settings(plugins: pluggy.PluginManager) -> None:
    ((offered,),) = plugins.hook.upright_connectors()
    made = offered.make("work", settings(max_body_bytes=1_000))
    assert offered.settings is GitHubSettings
    assert made.capabilities().max_body_bytes == 1_000
    assert made.capabilities().receives
    assert not made.capabilities().lists


def test_the_command_is_added_with_the_help_of_the_manifest(plugins: pluggy.PluginManager) -> None:
    group = click.Group("sandbox")
    plugins.hook.upright_commands(group=group)
    manifest = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))
    assert group.commands["github"].help == manifest["commands"]["sandbox github"]


def test_only_a_click_group_can_take_the_command(plugins: pluggy.PluginManager) -> None:
    with pytest.raises(TypeError, match="click group"):
        plugins.hook.upright_commands(group=object())


def test_the_module_of_the_hooks_is_light() -> None:
    code = "import upright_github, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=20
    )
    heavy = {"aiohttp", "click", "asyncio", "upright_github.connector"}
    assert not heavy & set(done.stdout.split())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"api_url": "http://git.example.org/api/v3"}, "https"),
        ({"api_url": "git.example.org"}, "api_url"),
        ({"bot_login": "  "}, "bot_login"),
        ({"max_body_bytes": 0}, "max_body_bytes"),
        ({"timeout_s": 0.0}, "timeout_s"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_their_key(changed: Changed, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        settings(**changed)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "http://localhost:1", "http://[::1]:1"])
def test_plain_http_is_for_the_loopback(url: str) -> None:
    assert settings(api_url=url).api_url == url
