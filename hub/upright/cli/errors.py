"""Errors of the command line: one sentence each, with what to do, and an exit code (S1)."""

from __future__ import annotations

import errno
from enum import IntEnum
from typing import Final


class Exit(IntEnum):
    """What a command ends with."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    UNREACHABLE = 5
    ENDED_BADLY = 6
    TRY_AGAIN = 75


class CliError(Exception):
    """A command failed; the message is the sentence that the person sees."""

    def __init__(self, sentence: str, exit_code: Exit = Exit.FAILED) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


_BY_CODE: Final = {
    "settings.invalid": Exit.USAGE,
    "store.unknown_id": Exit.NOT_FOUND,
    "store.ambiguous_id": Exit.USAGE,
    "store.unavailable": Exit.TRY_AGAIN,
}
"""Errors of other shelves, by their code: importing them here would make every start heavy."""

_YOURS: Final = "it must belong to whoever runs this; ls -l shows whose it is"
_ROOM: Final = "make room on that disk, and try again"
_ADVICE: Final = {
    errno.EACCES: _YOURS,
    errno.EPERM: _YOURS,
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
}


def exit_code_of(error: Exception) -> int:
    """Return the code that a command ends with after *error*."""
    if isinstance(error, CliError):
        return error.exit_code
    return _BY_CODE.get(str(getattr(error, "code", "")), Exit.FAILED)


def sentence_of(error: Exception) -> str:
    """Return what the person sees: an error of ours as it is, a stranger with its name."""
    if isinstance(error, CliError) or hasattr(error, "code"):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        advice = _ADVICE.get(error.errno or 0)
        return f"{where}{error.strerror or error}" + (f"; {advice}" if advice else "")
    return f"{type(error).__name__}: {error} (--debug shows where)"
