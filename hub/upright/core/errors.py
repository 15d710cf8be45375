"""Errors of the core: one tree; the docstring is the message for people, ``code`` for machines."""

from __future__ import annotations

from typing import ClassVar


class CoreError(Exception):
    """Something is not allowed."""

    code: ClassVar[str] = "core.error"

    def __init__(self, **data: object) -> None:
        said = ", ".join(f"{key} {value}" for key, value in data.items())
        sentence = (type(self).__doc__ or self.code).splitlines()[0].rstrip(".")
        super().__init__(f"{sentence}: {said}" if said else sentence)
        self.data = data


class IllegalMoveError(CoreError):
    """This state has no such move."""

    code = "core.illegal_move"


class StaleError(CoreError):
    """The decision was made on an older state; look again and decide anew."""

    code = "core.stale"


class TranscriptError(CoreError):
    """A tool call must have exactly one answer."""

    code = "core.transcript"


class InvalidError(CoreError):
    """A value is out of its bounds."""

    code = "core.invalid"
