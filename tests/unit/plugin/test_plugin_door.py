"""The door: a broken plugin is a reason, and the rest run."""

from __future__ import annotations

import sys

import pytest

from fixtures.plugins import GOOD, MANIFEST, MakePlugin
from upright.plugin.loading import Door
from upright.plugin.manifest import PluginError, listed, read


def test_a_manifest_is_read_without_importing_the_plugin(make_plugin: MakePlugin) -> None:
    entry = make_plugin("pl_light", code="raise SystemError('imported')")
    (plugin,) = listed([entry])
    assert plugin.manifest is not None
    assert plugin.manifest.kinds == ("pl_light",)
    assert "pl_light" not in sys.modules


def test_only_plugins_of_named_kinds_are_imported(make_plugin: MakePlugin) -> None:
    plugins = listed([make_plugin("pl_used"), make_plugin("pl_unused")])
    loaded = Door().connectors(plugins, {"pl_used"})
    assert list(loaded.types) == ["pl_used"]
    assert not loaded.failures
    assert "pl_unused" not in sys.modules


BROKEN = {
    "raises when imported": ("raise RuntimeError('boom')", "can't be imported: RuntimeError: boom"),
    "its hook raises": (
        GOOD.replace("return [", "raise KeyError('gone')\n    return ["),
        "broke in upright_connectors: KeyError: 'gone'",
    ),
    "its hook is async": (
        GOOD.replace("def upright", "async def upright"),
        "hooks are synchronous",
    ),
    "it misspells a hook": (
        GOOD.replace("upright_connectors", "upright_conectors"),
        "implements upright_conectors, and there is no such hook",
    ),
    "its hook takes what isn't given": (
        GOOD.replace("upright_connectors()", "upright_connectors(hub)"),
        "doesn't fit the door",
    ),
    "it offers no connector": (GOOD.replace("return [", "return [7,"), "no ConnectorType"),
    "it returns no list": (GOOD.replace("return [", "return 7 #"), "returned int"),
}


@pytest.mark.parametrize(("code", "said"), list(BROKEN.values()), ids=list(BROKEN))
def test_a_broken_plugin_is_a_reason_and_the_rest_run(
    make_plugin: MakePlugin, code: str, said: str
) -> None:
    plugins = listed([make_plugin("pl_bad", code=code), make_plugin("pl_good")])
    loaded = Door().connectors(plugins, {"pl_bad", "pl_good"})
    assert list(loaded.types) == ["pl_good"]
    assert said in loaded.failures["pl_bad"]


def test_a_kind_that_nobody_offers_is_said_with_those_that_are(make_plugin: MakePlugin) -> None:
    loaded = Door().connectors(listed([make_plugin("pl_other")]), {"githbu"})
    assert loaded.failures["githbu"].endswith("'githbu', valid here: pl_other")


def test_a_kind_that_its_plugin_lists_and_does_not_offer_is_a_failure(
    make_plugin: MakePlugin,
) -> None:
    entry = make_plugin("pl_less", manifest=MANIFEST.replace('["{name}"]', '["{name}", "more"]'))
    loaded = Door().connectors(listed([entry]), {"more"})
    assert "no installed plugin offers the connector 'more'" in loaded.failures["more"]


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("api = 1", "name in .*: this key is missing"),
        (MANIFEST.replace("api = 1", "api = 9"), "needs plugin API 9; this hub has 1"),
        ("name = ", "this is no TOML"),
    ],
)
def test_a_broken_manifest_hides_no_other(
    make_plugin: MakePlugin, manifest: str, said: str
) -> None:
    bad, good = listed([make_plugin("pl_torn", manifest=manifest), make_plugin("pl_whole")])
    assert good.manifest is not None
    with pytest.raises(Exception, match=said):
        read(bad.entry)
    loaded = Door().connectors([bad, good], {"pl_torn"})
    assert bad.problem in loaded.failures["pl_torn"]


def test_a_plugin_whose_package_is_gone_is_said(make_plugin: MakePlugin) -> None:
    entry = make_plugin("pl_gone")
    gone = type(entry)(name="gone", value="pl_not_there", group="upright")
    with pytest.raises(PluginError, match="pl_not_there, which is not installed"):
        read(gone)


def test_commands_come_through_the_hook(make_plugin: MakePlugin) -> None:
    hook = "@hookimpl\ndef upright_commands(group):\n    group.append(1)\n"
    code = f"from upright.api import hookimpl\n{hook}"
    group: list[int] = []
    Door().add_commands(listed([make_plugin("pl_cmd", code=code)])[0], group)
    assert group == [1]
