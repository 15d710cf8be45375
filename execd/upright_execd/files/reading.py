"""Reading: a file's lines, a folder's entries, a pattern's places; each answer is bounded."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import islice
from typing import Any, Final

from upright_execd.files import beneath, git
from upright_execd.files.errors import FilesError

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
MAX_TEXT_BYTES: Final = 40 * 1024
MAX_LINE_CHARS: Final = 2000
MAX_LINES: Final = 2000
MAX_ENTRIES: Final = 500
MAX_DEPTH: Final = 5
MAX_HITS: Final = 100
MAX_HIT_CHARS: Final = 300
MAX_SEARCHED_BYTES: Final = 2 * 1024 * 1024
MAX_SEARCHED_FILES: Final = 50_000


def read_bytes(root: int, parts: tuple[str, ...], most: int) -> bytes:
    """Return a file whole.

    Raises:
        FilesError: it is larger than *most*, or can't be opened.
    """
    with beneath.file(root, parts) as handle, os.fdopen(os.dup(handle), "rb") as opened:
        data = opened.read(most + 1)
    if len(data) > most:
        sentence = f"{'/'.join(parts)!r} is larger than {most} bytes; run a program to look at it."
        raise FilesError(sentence)
    return data


def read_file(root: int, path: str, *, offset: int = 1, limit: int = MAX_LINES) -> dict[str, Any]:
    """Return *limit* lines from line *offset* (from 1) on, and what the whole file is.

    ``next`` is the line to go on with, if any is left; a line that is too long is cut.
    """
    data = read_bytes(root, beneath.parts_of(path), MAX_FILE_BYTES)
    said: dict[str, Any] = {
        "path": path,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    if b"\0" in data:
        return {**said, "binary": True}
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    first = max(offset, 1)
    shown, size = list[str](), 0
    for line in lines[first - 1 : first - 1 + min(limit, MAX_LINES)]:
        kept = line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}[…cut]\n"
        size += len(kept.encode())
        if shown and size > MAX_TEXT_BYTES:
            break
        shown.append(kept)
    said |= {"lines": len(lines), "from": first, "text": "".join(shown)}
    if first - 1 + len(shown) < len(lines):
        said["next"] = first + len(shown)
    return said


# ------------------------------------------------------------------ folders
def list_folder(root: int, path: str, *, depth: int = 1) -> dict[str, Any]:
    """List a folder, sorted, down to *depth*; a folder ends in ``/``, a link in ``@``."""
    with beneath.folder(root, beneath.parts_of(path)) as handle:
        walk = _walk(handle, "", min(max(depth, 1), MAX_DEPTH))
        entries = list(islice(walk, MAX_ENTRIES + 1))
    said: dict[str, Any] = {"path": path or ".", "entries": entries[:MAX_ENTRIES]}
    if len(entries) > MAX_ENTRIES:
        said["cut"] = f"only the first {MAX_ENTRIES} are listed; name a folder below"
    return said


def _walk(handle: int, prefix: str, depth: int) -> Iterator[str]:
    """Yield what is in an open folder, in order, each folder before what is in it."""
    with os.scandir(handle) as found:
        rows = sorted((row for row in found if row.name != ".git"), key=lambda row: row.name)
    for row in rows:
        name = f"{prefix}{row.name}"
        if not row.is_dir(follow_symlinks=False):
            yield f"{name}@" if row.is_symlink() else name
            continue
        yield f"{name}/"
        if depth > 1:
            with beneath.folder(handle, (row.name,)) as below:
                yield from _walk(below, f"{name}/", depth - 1)


# ------------------------------------------------------------------ search
def search(root: int, pattern: str, *, path: str = "", glob: str = "") -> dict[str, Any]:
    """Find the lines that match a regular expression, in files that git would track.

    Raises:
        FilesError: the expression can't be read.
    """
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        sentence = f"{pattern[:200]!r} is no regular expression: {error}."
        raise FilesError(sentence) from error
    hits: list[dict[str, Any]] = []
    for name in _names(root, beneath.parts_of(path)):
        if glob and not fnmatch(name, glob) and not fnmatch(name.rpartition("/")[2], glob):
            continue
        for number, line in _lines(root, name):
            if wanted.search(line):
                hits.append({"path": name, "line": number, "text": line[:MAX_HIT_CHARS]})
            if len(hits) >= MAX_HITS:
                return {"hits": hits, "cut": f"there may be more than {MAX_HITS}"}
    return {"hits": hits}


def _names(root: int, parts: tuple[str, ...]) -> Iterator[str]:
    prefix = "/".join(parts)
    listed = git.tracked(root)
    if listed is None:
        walk = _walk(root, "", MAX_DEPTH)
        listed = [name for name in walk if not name.endswith(("/", "@"))]
    for name in listed[:MAX_SEARCHED_FILES]:
        if not prefix or name == prefix or name.startswith(f"{prefix}/"):
            yield name


def _lines(root: int, name: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a text file; what can't be read as one has none."""
    try:
        with beneath.file(root, beneath.parts_of(name)) as handle:
            if os.fstat(handle).st_size > MAX_SEARCHED_BYTES:
                return
            with os.fdopen(os.dup(handle), "rb") as opened:
                data = opened.read(MAX_SEARCHED_BYTES)
    except FilesError:
        return
    if b"\0" not in data:
        yield from enumerate(data.decode("utf-8", "replace").splitlines(), start=1)


def mode_of(root: int, parts: tuple[str, ...]) -> int | None:
    """Return the permissions of a file; None: there is none."""
    with beneath.folder(root, parts[:-1]) as above:
        try:
            return stat.S_IMODE(os.lstat(parts[-1], dir_fd=above).st_mode)
        except FileNotFoundError:
            return None
