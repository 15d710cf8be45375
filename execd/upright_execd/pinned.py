"""Pinned: the hub that this machine is paired with; written by ``execd pair``, and only there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright_execd.audit import entries
from upright_execd.errors import DamagedError
from upright_execd.paths import Paths, own_hub, write_private
from upright_wire.errors import WireError
from upright_wire.plain import from_plain, to_plain

ENDED: Final = "pairing.ended"


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


def why_none(paths: Paths) -> str:
    """Say in a sentence why this machine is paired with no hub: who ended that, or nobody began.

    Blocks: it reads the log.
    """
    told = [e for e in entries(paths.audit) if str(e.get("event")).startswith("pairing.")]
    if not told or told[-1]["event"] != ENDED:
        return "This machine is not paired with a hub."
    who = "The hub" if told[-1].get("by") == "hub" else "You"
    return f"{who} revoked this machine's pairing with {told[-1].get('hub')}."


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
