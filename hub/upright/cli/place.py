"""Place: which hub and which files a command works with; everything is looked up when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from upright.cli.client import Hub
    from upright.settings.home import Home
    from upright.settings.shape import Settings


@dataclass(kw_only=True)
class Place:
    """What the options of ``upright`` itself said, and what follows from it."""

    config: Path | None = None
    flags: dict[str, object] = field(default_factory=dict)

    @cached_property
    def env(self) -> Mapping[str, str]:
        """The environment, read once."""
        from upright.settings.load import environment  # noqa: PLC0415  # help must start light

        return environment()

    @property
    def plain(self) -> bool:
        """Whether colours are unwanted (no-color.org)."""
        return bool(self.env.get("NO_COLOR"))

    @cached_property
    def settings(self) -> Settings:
        """The configuration; SettingsError when it can't be used."""
        from upright.settings.load import load  # noqa: PLC0415  # help must start light

        return load(self.env, file=self.config, flags=self.flags)

    @cached_property
    def home(self) -> Home:
        """The hub's own files."""
        from upright.settings.home import Home  # noqa: PLC0415  # help must start light

        return Home(folder=self.settings.state_dir)

    @cached_property
    def hub(self) -> Hub:
        """The running hub: UPRIGHT_HUB, else what it wrote down, else where it is configured."""
        from upright.cli.client import Hub  # noqa: PLC0415  # help must start light

        return Hub(url=self.url(), token=self.token())

    def url(self) -> str:
        """Return the hub's address."""
        if named := self.env.get("UPRIGHT_HUB"):
            return named.rstrip("/")
        if (said := self.home.read_address()) is not None:
            return said.url
        section = self.settings.hub
        host = "127.0.0.1" if section.host in {"0.0.0.0", "::"} else section.host  # noqa: S104  # asks where it listens, binds nothing
        return f"http://{f'[{host}]' if ':' in host else host}:{section.port}"

    def token(self) -> str:
        """Return the API's token; empty when there is none."""
        if named := self.env.get("UPRIGHT_TOKEN"):
            return named
        found = self.home.read_token()
        return found.reveal() if found else ""


pass_place = click.make_pass_decorator(Place)
