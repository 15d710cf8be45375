from __future__ import annotations

import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import click
import pluggy
import pytest

import upright_ci
from fixtures.ci_hook import settings
from upright.api import API_VERSION, ENTRY_POINT_GROUP, Hooks
from upright.settings.errors import SettingsError
from upright.settings.parse import Place, parse
from upright_ci.settings import CiSettings, Provider

MANIFEST: Final = Path(upright_ci.__file__).with_name("upright-plugin.toml")
PAGE: Final = Path(__file__).parents[3] / "docs/howto/ci.md"


@pytest.fixture
def plugins() -> pluggy.PluginManager:
    manager = pluggy.PluginManager("upright")
    manager.add_hookspecs(Hooks)
    manager.register(upright_ci)
    manager.check_pending()
    return manager


def parsed(keys: dict[str, Any]) -> CiSettings:
    own = {key: value for key, value in keys.items() if key not in {"connector", "mode"}}
    return parse(CiSettings, own, Place(key="sources.x", origin="test"))


def sources() -> dict[str, dict[str, Any]]:
    """Return all sources that the page shows."""
    found: dict[str, dict[str, Any]] = {}
    for block in re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        found |= tomllib.loads(block).get("sources", {})
    return found


def test_the_entry_point_names_the_module_of_the_hooks() -> None:
    (found,) = entry_points(group=ENTRY_POINT_GROUP, name="ci")
    assert found.load() is upright_ci


def test_the_plugin_offers_the_kinds_of_its_manifest(plugins: pluggy.PluginManager) -> None:
    manifest = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))
    (types,) = plugins.hook.upright_connectors()
    assert [offered.kind for offered in types] == manifest["kinds"]
    assert (manifest["api"], manifest["module"]) == (API_VERSION, upright_ci.__name__)


@pytest.mark.parametrize("provider", [one for one in Provider if one is not Provider.GENERIC])
def test_each_provider_has_a_connector_that_receives(
    plugins: pluggy.PluginManager, provider: Provider
) -> None:
    ((offered,),) = plugins.hook.upright_connectors()
    capabilities = offered.make("work", settings(provider=provider)).capabilities()
    assert capabilities.receives
    assert not capabilities.lists  # without a token, and without a project's name


def test_the_command_is_added_with_the_help_of_the_manifest(plugins: pluggy.PluginManager) -> None:
    group = click.Group("sandbox")
    plugins.hook.upright_commands(group=group)
    manifest = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))
    assert group.commands["gitlab"].help == manifest["commands"]["sandbox gitlab"]


def test_only_a_click_group_can_take_the_command(plugins: pluggy.PluginManager) -> None:
    with pytest.raises(TypeError, match="click group"):
        plugins.hook.upright_commands(group=object())


@pytest.mark.parametrize("name", list(sources()))
def test_every_source_of_the_page_can_be_read(name: str) -> None:
    found = sources()[name]
    assert found["connector"] == "ci"
    assert parsed(found).provider == found["provider"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"provider": "gitlabb"}, "gitlab"),
        ({"provider": "junit", "secret": "plain text"}, "must be a reference"),
        ({"provider": "junit", "verify": "hmac"}, "header must name"),
        ({"provider": "gitlab", "api_url": "http://gitlab.example.org"}, "in clear"),
        ({"provider": "gitlab", "api_url": "gitlab"}, "api_url must be an address"),
        ({"provider": "gitlab", "token": "env:T"}, "bot_login"),
        ({"provider": "gitlab", "verify": "bearer"}, "not for gitlab"),
        ({"provider": "generic"}, "id and verdict"),
        ({"provider": "generic", "mapping": {"verdikt": "x"}}, "verdict"),
        ({"provider": "junit", "max_body_bytes": 0}, "max_body_bytes"),
        ({"provider": "junit", "timeout_s": 0.0}, "timeout_s"),
    ],
)
def test_what_can_not_work_is_refused_by_its_key(more: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parsed({"secret": "env:S", **more})
