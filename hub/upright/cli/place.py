"""Place: which hub and which files a command works with; everything is looked up when asked for."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

import click

from upright.cli.client import Hub
from upright.settings.home import Home
from upright.settings.load import environment, load
from upright.settings.secrets import from_ring
from upright.settings.shape import Settings

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(kw_only=True)
class Place:
    """What the options of ``upright`` itself said, and what follows from it."""

    config: Path | None = None
    flags: dict[str, object] = field(default_factory=dict)

    @cached_property
    def env(self) -> Mapping[str, str]:
        """The environment, read once."""
        return environment()

    @cached_property
    def settings(self) -> Settings:
        """The configuration; SettingsError when it can't be used."""
        return load(self.env, file=self.config, flags=self.flags)

    @cached_property
    def home(self) -> Home:
        """The hub's own files."""
        return Home(folder=self.settings.state_dir)

    @cached_property
    def hub(self) -> Hub:
        """The running hub: UPRIGHT_HUB, else what it wrote down, else where it is configured."""
        return Hub(url=self.url(), token=self.token())

    def url(self) -> str:
        """Return the hub's address."""
        if named := self.env.get("UPRIGHT_HUB"):
            return named.rstrip("/")
        if (said := self.home.read_address()) is not None:
            return said.url
        host = _dialled(self.settings.hub.host)
        return f"http://{host}:{self.settings.hub.port}"

    def token(self) -> str:
        """Return the API's token; empty when there is none.

        For a hub that UPRIGHT_HUB names: UPRIGHT_TOKEN, else what `upright login URL` has put
        into the key ring. This machine's own token goes to a hub on this machine alone.
        """
        if named := self.env.get("UPRIGHT_TOKEN"):
            return named
        if not is_here(self.url()):
            return from_ring(ring_name(self.url())) or ""
        found = self.home.read_token()
        return found.reveal() if found else ""


def is_here(url: str) -> bool:
    """Say whether an address is this machine's own."""
    return urlsplit(url).hostname in {"localhost", "127.0.0.1", "::1"}


def ring_name(url: str) -> str:
    """Return the name under which the key ring has the token for a hub."""
    return f"hub:{url.rstrip('/')}"


def _dialled(host: str) -> str:
    """Return the host to dial for one that is listened on."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1"
    return f"[{host}]" if address.version == 6 else host


def pass_place(command: Callable[Concatenate[Place, P], R]) -> Callable[P, R]:
    """Give a command the place that the options before its name describe."""

    @click.pass_context
    def with_place(ctx: click.Context, /, *args: P.args, **kwargs: P.kwargs) -> R:
        place = Place(config=ctx.find_object(Path))
        if place.env.get("NO_COLOR"):
            ctx.color = False
        return command(place, *args, **kwargs)

    return update_wrapper(with_place, command)
