"""House: what every part of the daemon's local half works with; built once, in ``daemon``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from upright_execd.argvrules import ArgvRule
from upright_execd.audit import Audit
from upright_execd.clock import Clock
from upright_execd.consent import Consent
from upright_execd.paths import Paths
from upright_execd.settings import Settings
from upright_execd.spool.store import Spool
from upright_execd.vault import Vault
from upright_execd.workspace import Workspace
from upright_wire.spec import Confinement


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRules:
    """What the owner has said, as read last. ``problem`` tells why a file could not be used.

    With a problem the mode is OFF: what can't be read allows nothing.
    """

    settings: Settings
    workspaces: tuple[Workspace, ...]
    argv_rules: tuple[ArgvRule, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """The parts. ``rules`` returns the owner's rules as they are now.

    ``hidden`` is what no confined command may read.
    """

    paths: Paths
    spool: Spool
    consent: Consent
    audit: Audit
    clock: Clock
    os_boot_id: str
    enforceable: frozenset[Confinement]
    hidden: tuple[Path, ...]
    login_environment: Mapping[str, str]
    vault: Vault
    rules: Callable[[], OwnerRules]
