"""Errors of the configuration: one sentence that names the key, the file and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SettingsError(Exception):
    """The configuration can't be used. The message is one sentence for people."""

    code = "settings.invalid"

    def __init__(self, key: str, origin: str, problem: str) -> None:
        super().__init__(f"{key} in {origin}: {problem}" if key else f"{origin}: {problem}")
        self.key = key
        self.origin = origin
        self.problem = problem


class SecretMissingError(Exception):
    """A secret can't be read; the message names its reference and what to do."""

    code = "secret.missing"

    def __init__(self, reference: str, problem: str) -> None:
        super().__init__(f"the secret {reference} can't be read: {problem}")
        self.reference = reference


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return ``, did you mean "…"?`` or the list of what is valid."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f'did you mean "{close[0]}"?'
    return f"valid here: {', '.join(names)}" if names else "nothing is valid here"
