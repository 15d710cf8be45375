"""Pinned: the hub that this machine is paired with; written by ``execd pair``, and only there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from upright_execd.errors import DamagedError
from upright_execd.paths import Paths, own_hub, write_private
from upright_wire.errors import WireError
from upright_wire.plain import from_plain, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The hub's address and key, and what it calls this device; ``key_file`` None: the keyring."""

    url: str
    host: str
    hub_id: str
    hub_key: bytes
    device_id: str
    key_file: str | None = None


def load(path: Path) -> Pinned | None:
    """Return the pairing; None: this machine is not paired.

    Raises:
        DamagedError: the file is not what was written.
    """
    try:
        return from_plain(Pinned, json.loads(path.read_text(encoding="ascii")))
    except FileNotFoundError:
        return None
    except (ValueError, WireError) as error:
        sentence = f"{path} is damaged."
        raise DamagedError(sentence, advice="Pair again: execd pair HUB") from error


def hidden(paths: Paths) -> tuple[Path, ...]:
    """Return what makes this machine or a hub on it what it is: no confined command may read it.

    Raises:
        DamagedError: the pairing can't be read.
    """
    hub = load(paths.pairing)
    key = () if hub is None or hub.key_file is None else (Path(hub.key_file),)
    return (paths.config, paths.state, own_hub(), *key)


def save(path: Path, pinned: Pinned) -> None:
    """Write the pairing, for the owner alone."""
    write_private(path, json.dumps(to_plain(pinned), indent=1).encode("ascii") + b"\n")
