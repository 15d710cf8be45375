"""Errors of the program for files: one sentence each, and a word for machines."""

from __future__ import annotations

from typing import ClassVar


class FilesError(Exception):
    """This can't be done."""

    word: ClassVar[str] = "refused"

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class NotHereError(FilesError):
    """There is no such file or folder."""

    word = "not_found"


class OutsideError(FilesError):
    """The path leads out of the folder, or through a link."""

    word = "outside"


class ChangedError(FilesError):
    """The file is not the one that was read."""

    word = "changed"


class LockedError(FilesError):
    """The worktree is another item's."""

    word = "locked"
