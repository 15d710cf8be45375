"""Probing: an endpoint is asked by the running hub, or from here; see ``llm.probe``."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import click

from upright.api import Secret, SecretRef
from upright.cli.client import Json, UnreachableError
from upright.cli.errors import CliError, Exit
from upright.cli.place import Place
from upright.compose.mind import DEFAULT, keys_of, roles_of
from upright.compose.purse import shown
from upright.engine.clock import SystemClock
from upright.engine.ports import ModelError
from upright.llm.probe import probe
from upright.settings.model import ModelSection
from upright.settings.secrets import Secrets


class NoAnswerError(CliError):
    """The endpoint gives no answer that can be used."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url} can't be used: {why}", Exit.FAILED)


def by_hub(place: Place, role: str) -> Json:
    """Let the running hub probe, which keeps what it finds; without a hub, do it from here."""
    try:
        return place.hub.post("v1", "models", "probe", role=role)
    except UnreachableError:
        return alone(place, role)


def alone(place: Place, role: str, *, url: str = "", name: str = "", key: str = "") -> Json:
    """Probe a role's endpoint, or another one, from here; nothing is kept.

    Raises:
        NoAnswerError: it is away, or refuses the key or the model.
    """
    section = _section(place.settings.model, url, name, key)
    return asyncio.run(_probed(place, section, role))


def _section(section: ModelSection, url: str, name: str, key: str) -> ModelSection:
    """Return the configured section, or one of another endpoint."""
    if not (url or name or key):
        if not section.configured:
            message = "no model is configured: give --url and --name, or set [model]"
            raise click.UsageError(message)
        return section
    reference = SecretRef(key) if key else (None if url else section.api_key)
    try:
        return ModelSection(
            base_url=url or section.base_url, name=name or section.name, api_key=reference
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error


async def _probed(place: Place, section: ModelSection, role: str) -> dict[str, object]:
    settings = replace(place.settings, model=section)
    secrets = Secrets(place.env, place.settings.home)

    async def secret(reference: SecretRef | None) -> Secret | None:
        return None if reference is None else await asyncio.to_thread(secrets.resolve, reference)

    keys = await keys_of(section, secret)
    roles = roles_of(settings, {DEFAULT: None, **keys}, SystemClock())
    endpoint = roles.endpoint(role)
    try:
        return shown(await probe(endpoint, role))
    except ModelError as error:
        raise NoAnswerError(endpoint.settings.base_url, str(error)) from error
    finally:
        await roles.stop()
