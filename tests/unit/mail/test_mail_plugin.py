"""The plugin's door: manifest, entry point, settings, and the page that shows them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import pluggy
import pytest

import upright_mail
from upright.api import API_VERSION, ENTRY_POINT_GROUP, Hooks
from upright.settings.errors import SettingsError
from upright.settings.parse import Place, parse
from upright_mail.settings import MailSettings

MANIFEST: Final = Path(upright_mail.__file__).with_name("upright-plugin.toml")
PAGE: Final = Path(__file__).parents[3] / "docs/howto/mail.md"


def parsed(**changed: object) -> MailSettings:
    """Read the source that the page shows, changed."""
    (block, *_) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    keys: dict[str, Any] = tomllib.loads(block)["sources"]["post"]
    del keys["connector"]
    return parse(MailSettings, {**keys, **changed}, Place(key="sources.post", origin="the page"))


def test_the_entry_point_names_the_module_of_the_hooks() -> None:
    (found,) = entry_points(group=ENTRY_POINT_GROUP, name="mail")
    assert found.load() is upright_mail


def test_the_plugin_offers_the_kinds_of_its_manifest() -> None:
    manager = pluggy.PluginManager("upright")
    manager.add_hookspecs(Hooks)
    manager.register(upright_mail)
    manager.check_pending()
    manifest = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))
    ((offered,),) = manager.hook.upright_connectors()
    assert [offered.kind] == manifest["kinds"]
    assert (manifest["api"], manifest["module"]) == (API_VERSION, upright_mail.__name__)
    able = offered.make("post", parsed()).capabilities()
    assert able.listens
    assert able.destinations == ("mail",)


def test_what_weighs_is_imported_for_a_named_source_only() -> None:
    code = (
        "import sys, upright_mail; list(upright_mail.upright_connectors());"
        "sys.exit(any(name in sys.modules for name in ('imapclient', 'lxml', 'aiosmtplib')))"
    )
    assert subprocess.call([sys.executable, "-c", code]) == 0


def test_the_page_shows_settings_that_work() -> None:
    keys = parsed()
    assert keys.is_own("HUB@example.org")
    assert keys.allows("ann@example.org")
    assert not keys.allows("eve@example.net")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"adresses": ["a@x.org"]}, "addresses"),
        ({"addresses": ["nobody"]}, "addresses must name"),
        ({"folders": []}, "folders must name"),
        ({"zone": "Atlantis"}, "zone must be"),
        ({"idle_s": 55.0}, "together at most 60"),
        ({"poll_s": 600.0}, "at most 540"),
        ({"max_mail_bytes": 5}, "1024 or more"),
        ({"answers_per_hour": 0}, "answers_per_hour"),
        ({"password": "the secret itself"}, "must be a reference"),
        ({"imap": {"host": " "}}, "host must name"),
        ({"imap": {"host": "x.org", "tls": "none"}}, "in clear"),
        ({"imap": {"host": "x.org", "port": 70_000}}, "port must be"),
        ({"senders": "trusted"}, "is not valid"),
    ],
)
def test_what_can_t_work_is_said_by_its_key(changed: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parsed(**changed)
