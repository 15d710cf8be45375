"""Secret: a value that can't print, be compared by chance, copied or written down (B14.5)."""

from __future__ import annotations

import hmac
from typing import NoReturn


class Secret:
    """A secret that can't print; ``reveal`` it at the last moment.

    It is no dataclass, so that nothing that writes dataclasses down looks into it. Pickling it is
    a TypeError, and so is making JSON of it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the secret itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other.reveal().encode())

    def __hash__(self) -> int:
        return hash(self._value)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, _memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        problem = "a secret is not written down"
        raise TypeError(problem)
