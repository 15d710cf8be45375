"""Confinement: which profiles this machine can hold a command to, and what they let it change."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from upright_execd.shim import landlock
from upright_execd.workspace import Held
from upright_wire.spec import Confinement

TEMPORARY: Final = "tmp"
"""The folder of a confined command's own temporary files, in its folder; TMPDIR names it."""


def enforceable() -> frozenset[Confinement]:
    """Return the profiles that can be enforced here: these are announced, and no others run."""
    found = {Confinement.NONE}
    if landlock.abi() >= landlock.LEAST_ABI:
        found.add(Confinement.WORKSPACE)
    return frozenset(found)


def caps(profiles: Collection[Confinement]) -> tuple[str, ...]:
    """Return what this machine can do, as it tells the hub."""
    return ("exec", "stdin", *(f"confinement.{profile}" for profile in sorted(profiles)))


def writable(profile: Confinement, held: Held, folder: Path) -> tuple[Path, ...]:
    """Return the folders that a command may change things in; empty: all that its user may.

    *folder* is the command's own. Outside of all workspaces it is the one that was asked for.
    """
    if profile is not Confinement.WORKSPACE:
        return ()
    own = folder / TEMPORARY
    if held.workspace is None:
        return (own, held.path)
    return (own, held.workspace.path, held.workspace.scratch)
