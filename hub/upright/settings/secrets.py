"""Secrets: ``keyring:NAME``, ``env:NAME`` and ``file:PATH`` become values, at the last moment."""

from __future__ import annotations

import asyncio
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from upright.api import Secret, SecretRef
from upright.settings.errors import SecretMissingError

TIMEOUT_S: Final = 15.0
MAX_SECRET_BYTES: Final = 64 * 1024


class Secrets:
    """Reads secrets; *env* is the environment as it was read at the start.

    A relative ``file:`` is below *home*, and refused when everybody on this machine may read it.
    """

    def __init__(self, env: Mapping[str, str], home: Path) -> None:
        self._env = env
        self._home = home

    def resolve(self, reference: SecretRef) -> Secret:
        """Read one secret; this may block on the key ring.

        Raises:
            SecretMissingError: it isn't there, or can't be read.
        """
        scheme, _, name = reference.reference.partition(":")
        match scheme:
            case "env":
                found = self._env.get(name)
                advice = f"the variable {name} is not set"
            case "file":
                found, advice = self._file(reference.reference, name), "the file is empty"
            case "keyring":
                found = from_ring(name)
                advice = f"store it with `upright secret set {name}`"
            case _:
                found, advice = None, "it must begin with keyring:, env: or file:"
        if not found:
            raise SecretMissingError(reference.reference, advice)
        return Secret(found)

    async def fetch(
        self, references: Iterable[SecretRef]
    ) -> Mapping[SecretRef, Secret | SecretMissingError]:
        """Read several, off the event loop; what can't be read is an error value."""
        wanted = tuple(dict.fromkeys(references))
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await asyncio.to_thread(self._each, wanted)
        except TimeoutError:
            problem = f"nothing answered within {TIMEOUT_S:g} s (is the key ring locked?)"
            return {ref: SecretMissingError(ref.reference, problem) for ref in wanted}

    def _each(self, wanted: tuple[SecretRef, ...]) -> dict[SecretRef, Secret | SecretMissingError]:
        found: dict[SecretRef, Secret | SecretMissingError] = {}
        for reference in wanted:
            try:
                found[reference] = self.resolve(reference)
            except SecretMissingError as error:
                found[reference] = error
        return found

    def _file(self, reference: str, name: str) -> str:
        path = self._home / Path(name).expanduser()
        try:
            mode = path.stat().st_mode
            if sys.platform != "win32" and stat.S_IMODE(mode) & stat.S_IROTH:
                problem = f"everybody may read it; run `chmod 600 {path}`"
                raise SecretMissingError(reference, problem)
            with path.open("rb") as file:
                return file.read(MAX_SECRET_BYTES).decode().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SecretMissingError(reference, str(error)) from error


def from_ring(name: str) -> str | None:
    """Read a secret of the key ring; this may block. None: there is none of this name.

    Raises:
        SecretMissingError: there is no key ring.
    """
    from upright.settings import ring  # noqa: PLC0415  # looking for backends costs, and few need one

    return ring.read(name)
