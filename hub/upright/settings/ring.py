"""Ring: the operating system's key ring. Every call may block; importing it looks for backends."""

from __future__ import annotations

from typing import Final

import keyring
from keyring.errors import KeyringError

from upright.settings.errors import SecretMissingError

SERVICE: Final = "upright"


def read(name: str) -> str | None:
    """Return a secret; None when the ring has none of this name.

    Raises:
        SecretMissingError: there is no key ring that can be used.
    """
    try:
        return keyring.get_password(SERVICE, name)
    except KeyringError as error:
        raise _missing(name, error) from error


def store(name: str, value: str) -> None:
    """Store a secret.

    Raises:
        SecretMissingError: there is no key ring that can be used.
    """
    try:
        keyring.set_password(SERVICE, name, value)
    except KeyringError as error:
        raise _missing(name, error) from error


def _missing(name: str, error: KeyringError) -> SecretMissingError:
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    problem = f"no key ring here ({said}); use file:PATH with mode 0600 instead"
    reference = f"keyring:{name}"
    return SecretMissingError(reference, problem)
