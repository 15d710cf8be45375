"""Load: flags over environment over file over default; the environment is read here, once."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import platformdirs

from upright.api import SecretRef
from upright.settings.auth import AuthSection
from upright.settings.errors import SettingsError, nearest
from upright.settings.model import OPENAI_URL, ROLES, ModelSection
from upright.settings.parse import Place, Text, parse
from upright.settings.shape import (
    EMPTY,
    DatabaseSection,
    DeadlinesSection,
    HubSection,
    Limits,
    LivesSection,
    LogsSection,
    RetentionSection,
    RoutingSection,
    Settings,
    SourceSection,
)
from upright.settings.spending import UNITS, BudgetsSection

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FILE_NAME: Final = "upright.toml"
WHOLE_FILE: Final = ""  # no one key is wrong
SECTIONS: Final[Mapping[str, type]] = {
    "hub": HubSection,
    "database": DatabaseSection,
    "model": ModelSection,
    "logs": LogsSection,
    "routing": RoutingSection,
    "limits": Limits,
    "deadlines": DeadlinesSection,
    "lives": LivesSection,
    "retention": RetentionSection,
    "auth": AuthSection,
    "budgets": BudgetsSection,
}
ALIASES: Final = {
    "OPENAI_BASE_URL": "model.base_url",
    "UPRIGHT_MODEL_URL": "model.base_url",
    "UPRIGHT_STATE_DIR": "hub.state_dir",
}
"""Variables with a name of their own; a later one wins."""
BUDGETED: Final = frozenset({"day", "source", "policy", "agent", "item", "turn"})
OPENAI_MODEL: Final = "gpt-5-mini"


def environment() -> dict[str, str]:
    """Return the process's environment: the one look at it that there is."""
    return dict(os.environ)  # noqa: TID251  # this is the place where settings read it


def home_of(env: Mapping[str, str]) -> Path:
    """Return the hub's home: UPRIGHT_HOME, else where the platform keeps user data."""
    named = env.get("UPRIGHT_HOME")
    if named:
        return Path(named).expanduser().absolute()
    return platformdirs.PlatformDirs("upright", appauthor=False).user_data_path


def load(
    env: Mapping[str, str], *, file: Path | None = None, flags: Mapping[str, object] = EMPTY
) -> Settings:
    """Read the whole configuration.

    *flags* maps dotted keys (``hub.port``) to values; None is no value. Without *file* it is
    UPRIGHT_CONFIG, else ``upright.toml`` in the home, which need not exist.

    Raises:
        SettingsError: anything that can't be used.
    """
    home = home_of(env)
    named = file or (Path(env["UPRIGHT_CONFIG"]) if env.get("UPRIGHT_CONFIG") else None)
    path = (named or home / FILE_NAME).expanduser().absolute()
    table = read_file(path, required=named is not None)
    given = {**_from_environment(env, table), **_from_flags(flags)}
    for key, text in given.items():
        _overlay(table, key, text)
    place = Place(key="", origin=str(path))
    top = {each.name for each in fields(Settings)} - {"home", "file", "origins"}
    for name in table:
        if name not in top:
            problem = f"there is no such key, {nearest(name, top)}"
            raise place.inside(name).wrong(problem)
    if "sources" in table:
        table["sources"] = _sources(table["sources"], place.inside("sources"))
    inside = {"home": str(home), "file": str(path), "origins": _origins(table, str(path))}
    settings = parse(Settings, {**table, **inside}, place)
    _check_notify(settings, place)
    return settings


def _check_notify(settings: Settings, place: Place) -> None:
    """Refuse to notify somebody by a source that is not there."""
    for name, person in settings.people.items():
        source = person.notify.partition(":")[0]
        if source and source not in settings.sources:
            wrong = place.inside(f"people.{name}.notify").wrong
            problem = f"there is no source {source!r}, {nearest(source, settings.sources)}"
            raise wrong(problem)


def read_file(path: Path, *, required: bool = True) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        SettingsError: it isn't there although it must be, can't be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if not required:
            return {}
        problem = "there is no such file; `upright init` writes one"
        raise SettingsError(WHOLE_FILE, str(path), problem) from error
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(WHOLE_FILE, str(path), f"it can't be read: {why}") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(WHOLE_FILE, str(path), f"this is no TOML: {error}") from error


def explain(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield (dotted key, value, where it came from), secrets as their references only."""
    for section in SECTIONS:
        yield from _leaves(section, getattr(settings, section), settings.origins)
    for key in ("bots", "trusted_bots"):
        yield key, ", ".join(sorted(getattr(settings, key))), settings.origins.get(key, "default")
    for name, source in settings.sources.items():
        for key, value in {"connector": source.connector, "mode": source.mode.value}.items():
            dotted = f"sources.{name}.{key}"
            yield dotted, value, settings.origins.get(dotted, "default")
        for key in source.keys:
            origin = settings.origins.get(f"sources.{name}.keys.{key}", str(settings.file))
            yield f"sources.{name}.{key}", "(set)", origin
    for name, price in settings.prices.items():
        said = f"{price.input} in, {price.output} out"
        yield f"prices.{name}", said, str(settings.file)
    for name, agent in settings.agents.items():
        origin = str(settings.file)
        yield f"agents.{name}", f"template {agent.template or name}, {agent.bounds()}", origin
    for rule in settings.rules:
        yield "rules", f"{rule.name}: {rule.verdict.value}", str(settings.file)
    for name, person in settings.people.items():
        told = f"; told at {person.notify}" if person.notify else ""
        said = f"{person.kind.value}: {', '.join(person.ids)}{told}"
        yield f"people.{name}", said, str(settings.file)


def _leaves(
    prefix: str, section: DataclassInstance, origins: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    for each in fields(section):
        value, key = getattr(section, each.name), f"{prefix}.{each.name}"
        if isinstance(value, SecretRef):
            yield key, value.reference, origins.get(key, "default")
        elif is_dataclass(value) and not isinstance(value, type):
            yield from _leaves(key, value, origins)
        else:
            yield key, str(value), origins.get(key, "default")


# ------------------------------------------------------------------ the layers
def _from_flags(flags: Mapping[str, object]) -> dict[str, Text]:
    return {
        key: Text(text=str(value), origin="flag")
        for key, value in flags.items()
        if value is not None
    }


def _from_environment(env: Mapping[str, str], table: Mapping[str, Any]) -> dict[str, Text]:
    found: dict[str, Text] = {}
    for name, key in ALIASES.items():
        if env.get(name):
            found[key] = Text(text=env[name], origin=f"environment {name}")
    for name, value in env.items():
        section, _, rest = name.removeprefix("UPRIGHT_").lower().partition("_")
        if name.startswith("UPRIGHT_") and section in SECTIONS and rest and name not in ALIASES:
            key = _key_of(name, section, rest)
            found[key] = Text(text=value, origin=f"environment {name}")
    return {**_openai(env, found, table), **found}


def _key_of(name: str, section: str, rest: str) -> str:
    valid = {each.name for each in fields(SECTIONS[section])}
    role, _, leaf = rest.partition("_")
    if section == "model" and role in ROLES and leaf in {"name", "base_url", "api_key"}:
        return f"model.{role}.{leaf}"
    if section == "budgets" and role in BUDGETED and leaf in UNITS:
        return f"budgets.{role}.{leaf}"
    if rest not in valid:
        variables = {f"UPRIGHT_{section}_{each}".upper() for each in valid}
        problem = f"unknown, {nearest(name, variables)}"
        raise SettingsError(name, "the environment", problem)
    return f"{section}.{rest}"


def _openai(
    env: Mapping[str, str], found: Mapping[str, Text], table: Mapping[str, Any]
) -> dict[str, Text]:
    """Say what OPENAI_API_KEY alone means: OpenAI's own service, with a small model."""
    if not env.get("OPENAI_API_KEY"):
        return {}
    origin = "environment OPENAI_API_KEY"
    section = table.get("model")
    said = section if isinstance(section, dict) else {}
    extra: dict[str, Text] = {}
    if "api_key" not in said:
        extra["model.api_key"] = Text(text="env:OPENAI_API_KEY", origin=origin)
    if "base_url" not in said and "model.base_url" not in found:
        extra["model.base_url"] = Text(text=OPENAI_URL, origin=origin)
        if "name" not in said:
            extra["model.name"] = Text(text=OPENAI_MODEL, origin=origin)
    return extra


def _overlay(table: dict[str, Any], key: str, text: Text) -> None:
    *sections, leaf = key.split(".")
    for section in sections:
        inner = table.setdefault(section, {})
        if not isinstance(inner, dict):
            return  # the file's value is wrong there: parsing says so
        table = inner
    table[leaf] = text


def _origins(table: Mapping[str, Any], file: str, prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping):
            found |= _origins(value, file, f"{key}.")
        else:
            found[key] = value.origin if isinstance(value, Text) else file
    return found


def _sources(given: object, place: Place) -> dict[str, object]:
    """Put the keys that belong to a source's kind below ``keys``: its plugin reads them."""
    if not isinstance(given, Mapping):
        problem = "must be a table of sources"
        raise place.wrong(problem)
    ours = {each.name for each in fields(SourceSection)} - {"keys"}
    sorted_out: dict[str, Any] = {}
    for name, table in given.items():
        if not isinstance(table, Mapping):
            problem = "must be a table"
            raise place.inside(name).wrong(problem)
        own = {key: value for key, value in table.items() if key in ours}
        rest = {key: value for key, value in table.items() if key not in ours}
        sorted_out[name] = {**own, "keys": rest}
    return sorted_out
