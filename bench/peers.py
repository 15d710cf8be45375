"""Peers: what we are measured against, in an environment of its own beside ours.

Nothing of it is a dependency of the project. A peer that can't be had is named as missing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
VENV: Final = ROOT / ".venv-bench"
PACKAGES: Final = (
    *("aiohttp", "aiosqlite", "sqlalchemy[asyncio]", "psycopg[binary]"),
    *("procrastinate", "dbos", "asyncssh"),
)
INSTALL_S: Final = 180
_PLACES: Final = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_ASK: Final = """
import importlib.metadata as m, json, sys
print(json.dumps({n: m.version(n) for n in sys.argv[1:] if any(m.distributions(name=n))}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """What is there: the packages of the peers' environment with their versions, and programs."""

    versions: Mapping[str, str]
    programs: Mapping[str, str]

    @property
    def python(self) -> str:
        """The interpreter of the peers' environment."""
        return str(VENV / "bin/python")

    def lacks(self, *names: str) -> str:
        """Say which of these packages and programs are not there; empty: all are."""
        known = {*self.versions, *self.programs}
        return ", ".join(f"no {name}" for name in names if name not in known)

    def said(self, name: str) -> str:
        """Return a peer's name with its version."""
        return f"{name} {self.versions.get(name, '')}".strip()


NOBODY: Final = Peers(versions={}, programs={})


def find(*, install: bool) -> Peers:
    """Look what is there; with *install* make the environment first, and bring what is missing."""
    names = [package.partition("[")[0] for package in PACKAGES]
    if install:
        if not VENV.exists():
            subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True, timeout=INSTALL_S)
        there = _versions(names)
        for package in PACKAGES:
            if package.partition("[")[0] not in there:
                _install(package)
    found = {name: shutil.which(name, path=_PLACES) for name in ("ssh", "sshd", "ssh-keygen")}
    programs = {name: path for name, path in found.items() if path}
    return Peers(versions=_versions(names), programs=programs)


def _install(package: str) -> None:
    """Install one package by its name; one that fails takes no other with it."""
    pip = [str(VENV / "bin/python"), "-m", "pip", "install", "--quiet"]
    pip += ["--disable-pip-version-check", "-c", str(ROOT / "constraints.txt"), package]
    try:
        done = subprocess.run(pip, check=False, timeout=INSTALL_S, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        print(f"{package}: not installed within {INSTALL_S} s", file=sys.stderr)
        return
    if done.returncode:
        print(f"{package} can't be installed: {done.stderr.strip()[-300:]}", file=sys.stderr)


def _versions(names: list[str]) -> dict[str, str]:
    python = VENV / "bin/python"
    if not python.exists():
        return {}
    ask = [str(python), "-c", _ASK, *names]
    done = subprocess.run(ask, check=True, timeout=60, capture_output=True, text=True)
    versions: dict[str, str] = json.loads(done.stdout)
    return versions
