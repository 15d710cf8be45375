"""Manifests: what a plugin says of itself in ``upright-plugin.toml``, read without importing it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

from upright.api import API_VERSION, ENTRY_POINT_GROUP
from upright.settings.errors import SettingsError
from upright.settings.load import read_file
from upright.settings.parse import Place, parse

FILE_NAME: Final = "upright-plugin.toml"


class PluginError(Exception):
    """A plugin can't be used; the message says which and why."""

    code = "plugin.failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A plugin's own words. ``commands`` maps ``sandbox NAME`` to a short help."""

    name: str
    api: int
    module: str
    summary: str = ""
    quality: str = ""
    kinds: tuple[str, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    permissions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An installed plugin: its entry point, and its manifest or what is wrong with that."""

    entry: EntryPoint
    manifest: Manifest | None = None
    problem: str = ""


def installed() -> tuple[EntryPoint, ...]:
    """Return the entry points of all installed plugins, by name; nothing is imported."""
    return tuple(sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.name))


def listed(entries: Iterable[EntryPoint]) -> tuple[Listed, ...]:
    """Read each plugin's manifest; a broken one hides no other."""
    return tuple(_listed(entry) for entry in entries)


def _listed(entry: EntryPoint) -> Listed:
    try:
        return Listed(entry=entry, manifest=read(entry))
    except (PluginError, SettingsError) as error:
        return Listed(entry=entry, problem=str(error))


def read(entry: EntryPoint) -> Manifest:
    """Read one manifest.

    Raises:
        PluginError: there is none, or it was written for another API.
        SettingsError: it can't be parsed.
    """
    path = _beside(entry) / FILE_NAME
    table = read_file(path)
    manifest = parse(Manifest, table, Place(key="", origin=str(path)))
    if manifest.api != API_VERSION:
        problem = f"{entry.name} needs plugin API {manifest.api}; this hub has {API_VERSION}"
        raise PluginError(problem)
    return manifest


def _beside(entry: EntryPoint) -> Path:
    package = entry.module.partition(".")[0]  # finding a top-level name imports nothing
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        problem = f"{entry.name} names the package {package}, which is not installed"
        raise PluginError(problem)
    return Path(next(iter(spec.submodule_search_locations)))
