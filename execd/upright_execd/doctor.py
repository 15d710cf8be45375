"""Doctor: what this machine needs, checked one by one; each with evidence, and a fix to copy."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from upright_execd import daemon, login, network, pinned, selftest, settings, workspace
from upright_execd.asking import ask
from upright_execd.audit import first_break
from upright_execd.confinement import enforceable
from upright_execd.errors import ExecdError
from upright_execd.keys import open_key
from upright_execd.paths import Paths
from upright_wire.spec import Confinement

BOUND_S: Final = 5.0
MIN_GIT: Final = (2, 20)
PORTS: Final = {"wss": 443, "ws": 80}


class Verdict(StrEnum):
    """How a check went; WARN doesn't keep anything from working."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: its id, what was seen, and one command or line that mends it."""

    id: str
    verdict: Verdict
    evidence: str
    fix: str = ""


def examine(paths: Paths) -> Iterator[Finding]:
    """Yield all findings. Blocks, at most a few seconds for each."""
    for check in _CHECKS:
        try:
            yield check(paths)
        except (ExecdError, OSError) as error:
            fix = error.advice.removeprefix("Run: ") if isinstance(error, ExecdError) else ""
            name = check.__name__.strip("_")
            yield Finding(id=name, verdict=Verdict.FAIL, evidence=str(error), fix=fix)


# ------------------------------------------------------------------ the checks
def _settings(paths: Paths) -> Finding:
    mode = settings.load(paths.settings).mode
    seen = f"{paths.settings}: mode {mode}" if paths.settings.exists() else f"defaults: mode {mode}"
    return Finding(id="settings", verdict=Verdict.OK, evidence=seen)


def _key(paths: Paths) -> Finding:
    hub = network.paired(paths)
    key = open_key(network.key_store(hub.key_file))
    where = hub.key_file or "the keyring"
    seen = f"{where}: {key.public.hex()[:16]}"
    return Finding(id="key", verdict=Verdict.OK, evidence=seen)


def _hub(paths: Paths) -> Finding:
    hub = pinned.load(paths.pairing)
    if hub is None:
        return Finding(id="hub", verdict=Verdict.FAIL, evidence="not paired", fix="execd pair HUB")
    parts = urlsplit(hub.url)
    place = (parts.hostname or "", parts.port or PORTS[parts.scheme])
    try:
        with socket.create_connection(place, timeout=BOUND_S) as connection:
            if parts.scheme == "wss":
                context = ssl.create_default_context()
                context.wrap_socket(connection, server_hostname=parts.hostname).close()
    except OSError as error:
        seen = f"{hub.host}: {error}"
        fix = f"curl -v https://{hub.host}/healthz"
        return Finding(id="hub", verdict=Verdict.FAIL, evidence=seen, fix=fix)
    return Finding(id="hub", verdict=Verdict.OK, evidence=f"{hub.host} answers")


def _daemon(paths: Paths) -> Finding:
    holder = daemon.holder(paths.lock)
    if holder is None:
        seen = "no execd runs on this state folder"
        return Finding(id="daemon", verdict=Verdict.WARN, evidence=seen, fix="execd run")
    return Finding(id="daemon", verdict=Verdict.OK, evidence=f"process {holder}")


def _git(_paths: Paths) -> Finding:
    path = shutil.which("git", path=settings.login_environment().get("PATH"))
    fix = "Install git 2.20 or later, and start execd with it on the PATH."
    if path is None:
        return Finding(id="git", verdict=Verdict.FAIL, evidence="not on the PATH", fix=fix)
    try:
        done = ask([path, "--version"], within_s=BOUND_S)
    except subprocess.TimeoutExpired as error:
        return Finding(id="git", verdict=Verdict.FAIL, evidence=str(error), fix=fix)
    said = done.stdout.decode("utf-8", "replace").strip()
    seen = f"{path}: {said}"
    words = [*said.split(), "0", "0", "0"]
    numbers = [int(part) for part in words[2].split(".")[:2] if part.isdecimal()]
    is_new = tuple(numbers) >= MIN_GIT
    verdict = Verdict.OK if is_new else Verdict.FAIL
    return Finding(id="git", verdict=verdict, evidence=seen, fix="" if is_new else fix)


def _workspaces(paths: Paths) -> Finding:
    rows = workspace.listed(paths.workspaces)
    missing = [row for row in rows if not workspace.is_in_place(row)]
    if missing:
        seen = f"not there, or moved: {', '.join(str(row.path) for row in missing)}"
        fix = f"execd workspace rm {missing[0].path}"
        return Finding(id="workspaces", verdict=Verdict.FAIL, evidence=seen, fix=fix)
    if not rows:
        fix = "execd workspace add PATH"
        return Finding(id="workspaces", verdict=Verdict.WARN, evidence="none is listed", fix=fix)
    seen = ", ".join(f"{row.label} ({row.path})" for row in rows)
    return Finding(id="workspaces", verdict=Verdict.OK, evidence=seen)


def _disk(paths: Paths) -> Finding:
    folder = next(path for path in (paths.state, *paths.state.parents) if path.exists())
    usage, least = shutil.disk_usage(folder), settings.load(paths.settings).min_free_percent
    free = usage.free * 100 // usage.total
    seen = f"{free} % of {folder} is free; commands start above {least} %"
    if free < least:
        fix = f"Free some of the disk that holds {folder}."
        return Finding(id="disk", verdict=Verdict.FAIL, evidence=seen, fix=fix)
    return Finding(id="disk", verdict=Verdict.OK, evidence=seen)


def _distributions(_paths: Paths) -> Finding:
    found = [
        f"{name} {there}" for name in ("upright", "upright-execd") if (there := _version(name))
    ]
    seen = ", ".join(found) or "run from a source tree"
    if len(found) > 1:
        fix = "pip uninstall upright-execd && pip install --force-reinstall upright"
        seen = f"{seen}: both hold the same files, uninstalling one breaks the other"
        return Finding(id="distributions", verdict=Verdict.FAIL, evidence=seen, fix=fix)
    return Finding(id="distributions", verdict=Verdict.OK, evidence=seen)


def _confinement(_paths: Paths) -> Finding:
    profiles = enforceable()
    seen = f"profiles: {', '.join(sorted(profiles))}"
    fix = "Use Linux 6.2 or later with Landlock on; until then confined commands are denied."
    if Confinement.WORKSPACE_NO_NETWORK not in profiles:
        return Finding(id="confinement", verdict=Verdict.WARN, evidence=seen, fix=fix)
    if found := selftest.faults():
        seen = f"a confined process {' and '.join(found)}"
        fix = 'Write into execd.toml: mode = "off"'
        return Finding(id="confinement", verdict=Verdict.FAIL, evidence=seen, fix=fix)
    return Finding(id="confinement", verdict=Verdict.OK, evidence=f"{seen}; tried out")


def _path(_paths: Paths) -> Finding:
    own = settings.login_environment()
    captured = login.capture(own)
    if captured is None:
        seen = "the login shell does not tell its environment; the daemon's own is used"
        return Finding(id="path", verdict=Verdict.WARN, evidence=seen, fix="chsh -s /bin/bash")
    here, there = (env.get("PATH", "").split(":") for env in (own, captured))
    missing = [name for name in here if name and name not in there]
    if missing:
        seen = f"on this PATH, and not on that of commands: {', '.join(missing)}"
        fix = f"echo 'export PATH={missing[0]}:$PATH' >> ~/.profile"
        return Finding(id="path", verdict=Verdict.WARN, evidence=seen, fix=fix)
    return Finding(id="path", verdict=Verdict.OK, evidence="commands find what this shell finds")


def _linger(_paths: Paths) -> Finding:
    user = pwd.getpwuid(os.getuid()).pw_name
    if not Path("/run/systemd/system").is_dir():
        return Finding(id="linger", verdict=Verdict.OK, evidence="no systemd here")
    if Path("/var/lib/systemd/linger", user).exists():
        return Finding(id="linger", verdict=Verdict.OK, evidence=f"{user} lingers")
    seen = f"what {user} started ends with the last log-out"
    fix = f"loginctl enable-linger {user}"
    return Finding(id="linger", verdict=Verdict.WARN, evidence=seen, fix=fix)


def _audit(paths: Paths) -> Finding:
    broken = first_break(paths.audit)
    if broken is None:
        return Finding(id="audit", verdict=Verdict.OK, evidence=f"{paths.audit} is whole")
    seen = f"{paths.audit}: line {broken} doesn't fit the one before"
    fix = f"sed -n {broken}p {paths.audit}"
    return Finding(id="audit", verdict=Verdict.WARN, evidence=seen, fix=fix)


def _owner(_paths: Paths) -> Finding:
    if os.getuid() == 0:
        seen = "execd runs as root, and so does every command"
        fix = "Run execd as the user whose work it is."
        return Finding(id="owner", verdict=Verdict.WARN, evidence=seen, fix=fix)
    return Finding(id="owner", verdict=Verdict.OK, evidence=f"user {os.getuid()}")


def _version(name: str) -> str:
    with suppress(PackageNotFoundError):
        return version(name)
    return ""


_CHECKS: Final[tuple[Callable[[Paths], Finding], ...]] = (
    _settings,
    _key,
    _hub,
    _daemon,
    _git,
    _workspaces,
    _disk,
    _distributions,
    _confinement,
    _path,
    _linger,
    _audit,
    _owner,
)
