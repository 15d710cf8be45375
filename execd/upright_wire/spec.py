"""Specs: what exactly a command is; the digest of these bytes is what is judged and what runs."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upright_wire.errors import SpecError
from upright_wire.plain import is_unicode, to_plain

MAX_SPEC_BYTES: Final = 48 * 1024  # an exec frame of 64 KiB holds it with room to spare
MAX_STDIN_BYTES: Final = 16 * 1024 * 1024
MAX_QUOTA_BYTES: Final = 4 * 1024 * 1024 * 1024
DEFAULT_QUOTA_BYTES: Final = 256 * 1024 * 1024
MAX_TIMEOUT_MS: Final = 30 * 24 * 3600 * 1000
MAX_GRACE_MS: Final = 10 * 60 * 1000
DEFAULT_TIMEOUT_MS: Final = 30 * 60 * 1000
DEFAULT_GRACE_MS: Final = 10_000

_HEX64: Final = re.compile(r"[0-9a-f]{64}")
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ABSOLUTE: Final = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")


class Confinement(StrEnum):
    """What limits a command on the device (E8.6)."""

    NONE = "none"
    WORKSPACE = "workspace"
    READ_ONLY = "read_only"
    WORKSPACE_NO_NETWORK = "workspace_no_network"


class Signal(StrEnum):
    """The first signal of a cancel; KILL follows after the grace."""

    TERM = "TERM"
    INT = "INT"
    HUP = "HUP"
    QUIT = "QUIT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdin:
    """Input that is given whole before the start: its size and its SHA-256, in hexadecimal.

    The bytes travel as stdin frames from offset 0 to an END flag; the device spools them and
    starts nothing before size and digest agree.
    """

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """How to end the command: a signal to its group, and what it is given to clean up."""

    signal: Signal = Signal.TERM
    grace_ms: int = DEFAULT_GRACE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One command: argv, never a shell line; ``cwd`` is absolute on the device.

    ``env`` holds what is set beyond the device's base environment; ``stdin`` None is empty input.
    ``secrets`` names variables, each with the secret of the device's owner that it is set from.

    Raises:
        SpecError: a field is out of its bounds.
    """

    argv: tuple[str, ...]
    cwd: str
    env: tuple[tuple[str, str], ...] = ()
    stdin: Stdin | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    cancel: Cancel = Cancel()
    quota_bytes: int = DEFAULT_QUOTA_BYTES
    confinement: Confinement = Confinement.WORKSPACE
    secrets: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        for field, sound in self._checks():
            if not sound:
                raise SpecError(field=field)
        if len(canonical(self)) > MAX_SPEC_BYTES:
            raise SpecError(field="spec", max_bytes=MAX_SPEC_BYTES)

    def _checks(self) -> tuple[tuple[str, bool], ...]:
        secrets = self.secrets or ()
        names = [name for name, _ in (*self.env, *secrets)]
        texts = (*self.argv, self.cwd, *(value for _, value in (*self.env, *secrets)))
        return (
            ("argv", bool(self.argv) and bool(self.argv[0])),
            ("cwd", _ABSOLUTE.match(self.cwd) is not None),
            ("env", all(_ENV_NAME.fullmatch(name) for name in names)),
            ("env", len(set(names)) == len(names)),
            ("text", all("\0" not in text and is_unicode(text) for text in texts)),
            ("stdin", self.stdin is None or _stdin_is_sound(self.stdin)),
            ("timeout_ms", 0 < self.timeout_ms <= MAX_TIMEOUT_MS),
            ("grace_ms", 0 <= self.cancel.grace_ms <= MAX_GRACE_MS),
            ("quota_bytes", 0 <= self.quota_bytes <= MAX_QUOTA_BYTES),
        )


def canonical(spec: Spec) -> bytes:
    """Return the one byte string that stands for this spec: sorted keys, ASCII, no spaces."""
    return json.dumps(to_plain(spec), sort_keys=True, separators=(",", ":")).encode("ascii")


def digest(spec: Spec) -> str:
    """Return the SHA-256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(canonical(spec)).hexdigest()


def is_digest(text: str) -> bool:
    """Say whether this is a SHA-256 as it is written here: 64 lower-case hexadecimal digits."""
    return _HEX64.fullmatch(text) is not None


def _stdin_is_sound(stdin: Stdin) -> bool:
    return 0 <= stdin.bytes <= MAX_STDIN_BYTES and is_digest(stdin.sha256)
