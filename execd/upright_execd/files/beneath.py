"""Beneath: files are opened below one folder, part by part, and no link is ever followed.

Every part of a path is opened relative to the one before it, so that whatever is swapped meanwhile
changes neither what was checked nor what is opened. ``.git`` is git's own and can't be named.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from upright_execd.files.errors import FilesError, NotHereError, OutsideError

MAX_PATH_BYTES: Final = 4096
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def parts_of(path: str) -> tuple[str, ...]:
    """Split a relative path; ``.`` and empty parts don't count.

    Raises:
        OutsideError: it is absolute, goes up, or names git's own folder.
    """
    if path.startswith("/") or "\0" in path or len(os.fsencode(path)) > MAX_PATH_BYTES:
        sentence = f"{path[:200]!r} is no path beneath the folder."
        raise OutsideError(sentence)
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    if ".." in parts:
        sentence = f"{path[:200]!r} goes up; name it from the folder."
        raise OutsideError(sentence)
    if any(part.lower() == ".git" for part in parts):
        sentence = "What is in .git is git's own; run git instead."
        raise OutsideError(sentence)
    return parts


@contextmanager
def folder(root: int, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """Open the folder at *parts* below *root*; missing ones are made where *make* says so.

    Raises:
        NotHereError: it isn't there, or is no folder. OutsideError: a part is a link.
    """
    current = os.dup(root)
    try:
        for part in parts:
            below = _enter(current, part, make=make)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _enter(current: int, part: str, *, make: bool) -> int:
    try:
        if make:
            _make(current, part)
        return os.open(part, _FOLDER, dir_fd=current)
    except OSError as error:
        raise _explained(error, part, current) from error


def _make(current: int, part: str) -> None:
    try:
        os.mkdir(part, dir_fd=current)
    except FileExistsError:
        return


@contextmanager
def file(root: int, parts: tuple[str, ...]) -> Iterator[int]:
    """Open a regular file for reading.

    Raises:
        NotHereError: it isn't there, or is no file. OutsideError: it is reached by a link.
    """
    if not parts:
        sentence = "Name a file."
        raise NotHereError(sentence)
    with folder(root, parts[:-1]) as above:
        try:
            handle = os.open(parts[-1], _FILE, dir_fd=above)
        except OSError as error:
            raise _explained(error, parts[-1], above) from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            sentence = f"{parts[-1]!r} is no regular file."
            raise NotHereError(sentence)
        yield handle
    finally:
        os.close(handle)


def path_of(handle: int) -> Path:
    """Return where an open folder is; the process goes there."""
    os.fchdir(handle)
    return Path.cwd()


def _explained(error: OSError, part: str, above: int) -> FilesError:
    shown = repr(part[:200])
    if error.errno == errno.ELOOP or _is_link(part, above):
        return OutsideError(f"{shown} is a link; links are not followed.")
    if error.errno == errno.ENOENT:
        return NotHereError(f"There is no {shown}.")
    if error.errno == errno.ENOTDIR:
        return NotHereError(f"{shown} is no folder.")
    return FilesError(f"{shown}: {error.strerror}.")


def _is_link(part: str, above: int) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(part, dir_fd=above).st_mode)
    except OSError:
        return False
