"""Findings: what ``upright doctor`` looks at, and how each thing is set right."""

from __future__ import annotations

import asyncio
import http.client
import os
import stat
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import distributions
from typing import Any, Final

from upright.api import SecretRef
from upright.cli import render
from upright.cli.client import AnsweredError, UnreachableError
from upright.cli.database import database
from upright.cli.place import Place
from upright.core.budget import Level, Measure, said_of
from upright.plugin.connectors import problems
from upright.plugin.manifest import installed, listed
from upright.settings.errors import SecretMissingError
from upright.settings.secrets import Secrets
from upright.store import oracle, schema
from upright.store.address import Address
from upright.store.errors import StoreError
from upright.store.opening import open_storage

MODEL_TIMEOUT_S: Final = 5.0
WAL_RACE: Final = ((3, 7, 0), (3, 51, 3))  # from, and the first that is sound


class Verdict(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check's result; ``fix`` is a line that can be copied, where there is one."""

    id: str
    verdict: Verdict
    said: str
    fix: str = ""


def ok(name: str, said: str) -> Finding:
    """Say that something is as it should be."""
    return Finding(id=name, verdict=Verdict.OK, said=said)


def note(name: str, said: str, fix: str = "") -> Finding:
    """Say what a person should know."""
    return Finding(id=name, verdict=Verdict.NOTE, said=said, fix=fix)


def failed(name: str, said: str, fix: str = "") -> Finding:
    """Say what must be set right."""
    return Finding(id=name, verdict=Verdict.FAILED, said=said, fix=fix)


# ------------------------------------------------------------------ this machine
def installation(_place: Place) -> Iterator[Finding]:
    """Upright and upright-execd share files: with both, removing one breaks the other."""
    ours = {"upright", "upright-execd"}
    found = ours & {str(each.metadata["Name"]).lower() for each in distributions()}
    if found == ours:
        said = "upright and upright-execd are both installed here, and upright has execd already"
        yield failed("install", said, "pip uninstall upright-execd upright && pip install upright")


def sqlite(place: Place) -> Iterator[Finding]:
    """Remark on the library's WAL-reset race, which needs two writers."""
    if place.settings.database.url:
        return
    version = schema.sqlite_version()
    said = f"SQLite {'.'.join(map(str, version))}"
    if WAL_RACE[0] <= version < WAL_RACE[1]:
        said += ": two writers could corrupt a file; Upright has one, so let no other program write"
        yield note("sqlite", said)
    else:
        yield ok("sqlite", said)


def revision(place: Place) -> Iterator[Finding]:
    """Look at the database's revision."""
    try:
        where = database(place)
        schema.check(where)
    except (StoreError, SecretMissingError) as error:
        yield failed("database", str(error), str(getattr(error, "command", "")))
    else:
        yield ok("database", f"{where} is at revision {schema.head()}")


def token(place: Place) -> Iterator[Finding]:
    """See that nobody else can read the API's token, or the hub's key."""
    for name, path in (("token", place.home.token), ("key", place.home.hub_key)):
        if not path.exists():
            yield failed(name, f"{path} is missing", "upright init")
        elif not os.access(path, os.R_OK):
            yield failed(name, f"you can't read {path}", f"chmod 600 {path}, as its owner")
        elif stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield failed(name, f"others may read {path}", f"chmod 600 {path}")
        else:
            yield ok(name, f"{path} is yours alone")


def plugins(place: Place) -> Iterator[Finding]:
    """Read every manifest, and every source's keys."""
    known = listed(installed())
    for plugin in known:
        if plugin.manifest is None:
            yield failed(f"plugin {plugin.entry.name}", plugin.problem)
        else:
            yield ok(f"plugin {plugin.entry.name}", plugin.manifest.summary)
    settings = place.settings
    sources = {name: one for name, one in settings.sources.items() if one.enabled}
    wrong = problems(sources, known, file=str(settings.file))
    for name in settings.sources:
        if name in wrong:
            yield failed(f"source {name}", wrong[name])


# ------------------------------------------------------------------ the model
def model(place: Place) -> Iterator[Finding]:
    """Ask the model's endpoint which models it has; that costs nothing."""
    section = place.settings.model
    if not section.configured:
        said = "none: candidates and requests are held for you"
        yield note("model", said, "set [model] base_url and name, or UPRIGHT_MODEL_URL")
        return
    try:
        status = _ask(f"{section.base_url.rstrip('/')}/models", _key(place, section.api_key))
    except (OSError, http.client.HTTPException, SecretMissingError, ValueError) as error:
        yield failed("model", f"{section.base_url}: {error}")
        return
    if status in {401, 403}:
        yield failed("model", f"{section.base_url} refuses the key ({status})")
    else:
        said = f"{section.base_url} answers ({status}); roles ask for {_models(place)}"
        yield ok("model", said)


def _models(place: Place) -> str:
    section = place.settings.model
    return ", ".join(
        dict.fromkeys(name for name in (*section.names().values(), section.name) if name)
    )


def _key(place: Place, reference: SecretRef | None) -> str:
    if reference is None:
        return ""
    return Secrets(place.env, place.settings.home).resolve(reference).reveal()


def _ask(url: str, key: str) -> int:
    opener = urllib.request.build_opener()  # through a proxy, where the environment names one
    opener.addheaders = [("Authorization", f"Bearer {key}")] if key else []
    try:
        with opener.open(url, timeout=MODEL_TIMEOUT_S) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


# ------------------------------------------------------------------ the running hub
def hub(place: Place) -> Iterator[Finding]:
    """Look at the hub, its sources, its devices and its work; without it, at the work alone."""
    try:
        status = place.hub.get("v1", "status")
    except UnreachableError as error:
        yield note("hub", str(error))
        yield from _stalled_at_rest(place)
        return
    except PermissionError as error:
        yield failed("hub", f"nobody can ask it without {error.filename}")
        return
    except AnsweredError as error:
        yield failed("hub", str(error))
        return
    yield ok("hub", f"{place.url()} answers, version {status.get('version')}")
    yield from _sources(place)
    yield from _devices(place)
    yield from _tokens(place)
    yield from _held(place.hub.get("v1", "models"))
    yield from _spent(place.hub.get("v1", "budgets"))
    yield from _stalled(place.hub.get("v1", "stalled"))


def _sources(place: Place) -> Iterator[Finding]:
    for row in place.hub.get("v1", "sources"):
        name, said = f"source {row['name']}", f"{row['state']} {row['reason']}".strip()
        if row["state"] in {"ready", "loading"}:
            yield ok(name, said)
        elif row["state"] == "paused":
            yield note(name, said, f"upright source enable {row['name']}")
        else:
            yield failed(name, said, f"upright source retry {row['name']}")


def _devices(place: Place) -> Iterator[Finding]:
    devices = place.hub.get("v1", "devices")
    if not devices:
        yield note("devices", "none is paired", f"execd pair {place.url()}")
    for row in devices:
        rooms = ", ".join(room["path"] for room in row["workspaces"]) or "no workspace"
        link = "online" if row["online"] else "offline"
        yield ok(f"device {row['name']}", f"{row['state']}, {link}: {rooms}")


def _tokens(place: Place) -> Iterator[Finding]:
    """Name each token that ends within seven days: everybody's, where an admin looks."""
    is_admin = place.hub.get("v1", "me")["role"] == "admin"
    for row in place.hub.get("v1", "tokens", all=1 if is_admin else None):
        if row["state"] == "ending":
            said = f"ends on {render.day(row['ends_at_ms'])}; what uses it gets no answer then"
            scopes = " ".join(f"--scope {scope}" for scope in row["scopes"])
            yield note(f"token {row['name']}", said, f"upright token new {row['name']} {scopes}")


def _held(rows: list[dict[str, Any]]) -> Iterator[Finding]:
    """Name each endpoint whose breaker is open: no call is made to it."""
    for row in rows:
        if row["held_at_ms"] is not None:
            said = f"{row['base_url']} is held: {row['held_reason']}"
            yield failed("model", said, "mend it, then: upright model retry")


def _spent(rows: list[dict[str, Any]]) -> Iterator[Finding]:
    """Name each budget that people were warned of, or that is used up (B16.2)."""
    for row in rows:
        if row["level"] == Level.FINE:
            continue
        whose = f"{row['scope']} {row['name']}".strip()
        used, cap = (said_of(Measure(row["measure"]), row[name]) for name in ("used", "cap"))
        said = f"{used} of {cap} are used, {row['percent']:g} %"
        is_over = row["level"] == Level.STOP
        fix = f"upright budget set {whose} …"
        yield (failed if is_over else note)(f"budget {whose}", said, fix)


def _stalled(rows: list[dict[str, Any]]) -> Iterator[Finding]:
    if not rows:
        yield ok("work", "nothing sleeps for ever")
    for row in rows:
        yield failed(
            f"work {row['id']}", f"{row['state']}, and nothing will wake it: {row['missing']}"
        )


def _stalled_at_rest(place: Place) -> Iterator[Finding]:
    """Open the database, which only works while no hub has it."""
    try:
        found = asyncio.run(_asleep(database(place)))
    except (StoreError, SecretMissingError):
        return  # the check of the database has said why
    yield from _stalled([asdict(each) for each in found])


async def _asleep(where: Address) -> list[oracle.Stalled]:
    store = await open_storage(where, lambda: 0.5)  # nobody else is there to be out of step with
    try:
        return await store.read(lambda c: [*oracle.stalled(c), *oracle.unheard(c)])
    finally:
        await store.close()


CHECKS: Final[tuple[Callable[[Place], Iterator[Finding]], ...]] = (
    installation,
    sqlite,
    revision,
    token,
    plugins,
    model,
    hub,
)
