"""Disk: an agent's home as a folder that its owner reads and edits; every function here blocks.

Nothing is followed out of the folder: a link is refused, wherever it points, and only names that a
home may have are looked at. What can't be taken is named, never skipped in silence.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from upright.core import home
from upright.core.errors import InvalidError
from upright.settings.home import make_private_folder, write_private

MANIFEST: Final = ".home.json"
BESIDE: Final = ".conflict-"
"""In the name of a file that holds the store's text where both sides had changed."""
_MOST_LOOKED_AT: Final = 4 * home.MAX_FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a folder holds: texts by path; what can't be taken, by path with the reason."""

    texts: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    base: Mapping[str, str] = field(default_factory=dict)  # digests of what was last the same


def scan(folder: Path) -> Found:
    """Read a home's folder; there need be none.

    Raises:
        OSError: the folder can't be read.
    """
    if not folder.exists() and not folder.is_symlink():
        return Found()
    if not _is_folder(folder):
        return Found(refused={".": "is no folder of its own"})
    texts, refused = dict[str, str](), dict[str, str]()
    for count, path in enumerate(_files(folder, refused)):
        name = path.relative_to(folder).as_posix()
        if not name.isprintable():  # also what is no UTF-8
            refused[ascii(name)] = "has a name that can't be shown"
            continue
        if count >= _MOST_LOOKED_AT:
            refused["."] = f"holds more than {_MOST_LOOKED_AT} files: only these were looked at"
            break
        try:
            home.kind_of(name)
            text = _read(path)
            home.check_file(name, text)
        except (InvalidError, UnicodeDecodeError, OSError, _NotPlainError) as error:
            refused[name] = str(error)
        else:
            texts[name] = text
    return Found(texts=texts, refused=refused, base=_manifest(folder))


class _NotPlainError(Exception):
    """This is a link, or no plain file."""


def _files(folder: Path, refused: dict[str, str], depth: int = 0) -> Iterator[Path]:
    """Yield files, sorted, down to where a home may have some; links are refused, not followed."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or BESIDE in path.name:
            continue
        if not path.is_symlink() and path.is_dir():
            if depth < 2:  # skills/NAME/SKILL.md
                yield from _files(path, refused, depth + 1)
            else:
                refused[path.name] = "is a folder where a home has none"
        else:
            yield path


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


def _read(path: Path) -> str:
    """Read a plain file that is not larger than one may be; a byte more shows that it is."""
    before = path.lstat()
    if not stat.S_ISREG(before.st_mode):
        raise _NotPlainError("this is a link, or no plain file")
    with path.open("rb") as file:
        now = os.fstat(file.fileno())
        if (now.st_dev, now.st_ino) != (before.st_dev, before.st_ino):
            raise _NotPlainError("it was replaced while it was read")
        return file.read(home.MAX_FILE_BYTES + 1).decode()


def _manifest(folder: Path) -> dict[str, str]:
    """Read what was last the same in both places; nothing when it can't be read."""
    try:
        known = json.loads(_read(folder / MANIFEST))
        return {str(path): str(digest) for path, digest in known.items()}
    except (OSError, ValueError, AttributeError, RecursionError, _NotPlainError):
        return {}


# ------------------------------------------------------------------ writing
def is_as_seen(path: Path, text: str | None) -> bool:
    """Say whether a file still holds this text, or is still not there."""
    try:
        return _read(path) == text
    except FileNotFoundError:
        return text is None
    except (UnicodeDecodeError, _NotPlainError):
        return False


def lay_out(folder: Path, name: str, text: str) -> None:
    """Write a file into a home's folder, whole or not at all.

    Raises:
        InvalidError: a folder on the way is a link: nothing is written through it.
        OSError: the folder can't be written.
    """
    path = folder / name
    _make_folders(folder, path.parent)
    write_private(path, text.encode())


def remove(folder: Path, name: str) -> None:
    """Remove a file of a home's folder, and its own folder with the last one."""
    path = folder / name
    path.unlink(missing_ok=True)
    if path.parent not in {folder, folder / "notes"} and not any(path.parent.iterdir()):
        path.parent.rmdir()


def write_manifest(folder: Path, base: Mapping[str, str]) -> None:
    """Note what is the same in both places now."""
    make_private_folder(folder)
    write_private(folder / MANIFEST, json.dumps(dict(sorted(base.items())), indent=1).encode())


def _make_folders(folder: Path, parent: Path) -> None:
    """Make the folders from a home down to *parent*, and refuse one that is a link."""
    for one in [*reversed([p for p in parent.parents if p.is_relative_to(folder)]), parent]:
        if one.is_symlink():
            raise InvalidError(path=one.name, must_be="a folder, not a link")
        make_private_folder(one)
