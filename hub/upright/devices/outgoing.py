"""Outgoing: control messages in their order; an empty one weighs next to nothing."""

from __future__ import annotations

from upright_wire.frames import Message


class Outgoing:
    """A queue of two lists: what comes in, and what leaves, the next one last."""

    __slots__ = ("_coming", "_leaving")

    def __init__(self) -> None:
        self._coming: list[Message] = []
        self._leaving: list[Message] = []

    def __len__(self) -> int:
        return len(self._coming) + len(self._leaving)

    def put(self, message: Message) -> None:
        """Add one behind the others."""
        self._coming.append(message)

    def take(self) -> Message | None:
        """Return the next; None: there is none."""
        if not self._leaving:
            self._leaving, self._coming = self._coming[::-1], []
        return self._leaving.pop() if self._leaving else None
