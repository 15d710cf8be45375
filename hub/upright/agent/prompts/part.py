"""Part: one piece of a prompt, and why it is there; the reason is for us, and never sent.

A prompt is put together with what changes least first: whatever changes busts a provider's cache
from there on, for every session at once (B8.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a prompt: whole lines."""

    text: str
    why: str

    def __post_init__(self) -> None:
        if not self.text.endswith("\n") or not self.why:
            problem = "a part is whole lines, and says why it is there"
            raise ValueError(problem)


def joined(parts: Iterable[Part]) -> str:
    """Put parts together, in their order."""
    return "".join(part.text for part in parts)
