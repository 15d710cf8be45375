"""Repositories: when two clone addresses name the same one (E10.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_SCP: Final = re.compile(r"(?:[^@/\s]+@)?(?P<host>[^:/\s]+):(?P<path>[^/].*|/.*)")
_URL: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^@/\s]*@)?(?P<host>[^:/\s]*)(?::\d+)?(?P<path>/.*)?"
)
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")


def key(address: str) -> str:
    """Return what two addresses of one repository share: ``host/owner/name``, or a local path.

    User names, ports, the scheme, a trailing slash and ``.git`` do not count; the host's case
    doesn't either. An address that is a path stays one, without ``.git``.
    """
    address = address.strip()
    if found := _URL.fullmatch(address):
        host, path = found["host"], found["path"] or "/"
        if found["scheme"] == "file":
            return _bare(path)
        return f"{host.lower()}/{_bare(path).strip('/')}"
    local = address.startswith(("/", ".")) or _DRIVE.match(address)
    if not local and (found := _SCP.fullmatch(address)):
        return f"{found['host'].lower()}/{_bare(found['path']).strip('/')}"
    return _bare(address)


def _bare(path: str) -> str:
    return path.rstrip("/").removesuffix(".git")


def same(some: Iterable[str], others: Iterable[str]) -> bool:
    """Say whether any address of one list names the repository of any address of the other."""
    keys = {key(address) for address in some} - {""}
    return not keys.isdisjoint(key(address) for address in others)
