"""Confinement: which profiles this machine can hold a command to, and what each of them means."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright_execd.shim import landlock, seccomp
from upright_execd.workspace import Held
from upright_wire.spec import Confinement

TEMPORARY: Final = "tmp"
"""The folder of a confined command's own temporary files, in its folder; TMPDIR names it."""
SYSTEM: Final = tuple(
    Path(name)
    for name in (
        *("/bin", "/dev", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt"),
        *("/proc", "/sbin", "/snap", "/sys", "/usr"),
    )
)
"""What a command without secrets may read of the machine: programs, and no home of anybody."""
OWN: Final = tuple(
    dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[1]))
)
"""Where this program and its Python lie: the program for files is one of the commands."""
OFFLINE: Final = frozenset({Confinement.WORKSPACE_NO_NETWORK, Confinement.READ_ONLY})
WITHOUT_SECRETS: Final = frozenset({Confinement.WORKSPACE_NO_NETWORK})
_PROGRAMS: Final = "bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a command is held to.

    ``writable`` holds the only folders in which it may change anything, the first for its temporary
    files; empty: it is not confined. ``readable`` is what it may read beside; empty: everything
    but ``hidden``.
    """

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    has_network: bool = True


def enforceable() -> frozenset[Confinement]:
    """Return the profiles that can be enforced here: these are announced, and no others run."""
    found = {Confinement.NONE}
    if landlock.abi() >= landlock.LEAST_ABI:
        found.add(Confinement.WORKSPACE)
        if seccomp.is_known():
            found |= OFFLINE
    return frozenset(found)


def caps(profiles: Collection[Confinement]) -> tuple[str, ...]:
    """Return what this machine can do, as it tells the hub."""
    return ("exec", "stdin", *(f"confinement.{profile}" for profile in sorted(profiles)))


def bounds(
    profile: Confinement,
    held: Held,
    folder: Path,
    *,
    readable: Iterable[Path] = (),
    hidden: Iterable[Path] = (),
) -> Bounds:
    """Return what *profile* means for a command in the *held* folder; *folder* is its own.

    Outside of all workspaces the folder that was asked for takes the workspace's place. *readable*
    counts only for a profile that keeps secrets away; *hidden* is what nobody confined may read.
    """
    if profile is Confinement.NONE:
        return Bounds()
    own = (folder / TEMPORARY,)
    root = held.workspace
    place = (held.path,) if root is None else (root.path, root.scratch)
    return Bounds(
        writable=own if profile is Confinement.READ_ONLY else own + place,
        readable=(*SYSTEM, *OWN, *readable) if profile in WITHOUT_SECRETS else (),
        hidden=tuple(hidden),
        has_network=profile not in OFFLINE,
    )


def programs(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders of programs on the PATH, each with what lies beside it.

    ``X/bin`` brings X, so that a program finds its libraries; but a home, or what lies right in it
    (``~/.local``, ``~/.cargo``), holds more than programs: of these only ``bin`` itself is taken.
    """
    home = Path(environment.get("HOME") or "/")
    found: list[Path] = []
    for name in environment.get("PATH", "").split(":"):
        path = Path(name)
        if not path.is_absolute() or path == home or path in home.parents:
            continue
        above = path.parent
        is_wide = above in {home, *home.parents} or above.parent == home
        found.append(above if path.name == _PROGRAMS and not is_wide else path)
    return tuple(dict.fromkeys(found))
