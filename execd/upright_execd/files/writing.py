"""Writing: a file whole and at once, or a patch whole or not at all."""

from __future__ import annotations

import hashlib
import os
import secrets
from typing import Any, Final

from upright_execd.files import beneath, git, reading
from upright_execd.files.errors import ChangedError, FilesError, NotHereError, OutsideError

MAX_WRITTEN_BYTES: Final = 4 * 1024 * 1024
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN: Final = 0o666  # as the umask allows


def write_file(
    root: int, path: str, data: bytes, *, expected_sha256: str | None = None
) -> dict[str, Any]:
    """Put *data* in place of a file, in one step; folders on the way are made.

    *expected_sha256* is what was read before; empty says that there must be no file yet, None
    that any will do.

    Raises:
        ChangedError: the file is another by now. OutsideError: it is a link, or beyond one.
    """
    parts = beneath.parts_of(path)
    if not parts or len(data) > MAX_WRITTEN_BYTES:
        sentence = f"A file needs a name, and at most {MAX_WRITTEN_BYTES} bytes."
        raise FilesError(sentence)
    with beneath.folder(root, parts[:-1], make=True):
        pass
    _check(root, parts, expected_sha256)
    mode = reading.mode_of(root, parts)
    with beneath.folder(root, parts[:-1]) as above:
        _replace(above, parts[-1], data, mode)
    return {
        "path": path,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "created": mode is None,
    }


def _check(root: int, parts: tuple[str, ...], expected_sha256: str | None) -> None:
    try:
        found = hashlib.sha256(reading.read_bytes(root, parts, reading.MAX_FILE_BYTES)).hexdigest()
    except NotHereError:
        if reading.mode_of(root, parts) is not None:
            sentence = f"{'/'.join(parts)!r} is there, and no regular file."
            raise OutsideError(sentence) from None
        found = ""
    if expected_sha256 is not None and found != expected_sha256:
        what = f"it is {found} now" if found else "it is not there"
        sentence = f"{'/'.join(parts)!r} is not what you read: {what}. Read it again."
        raise ChangedError(sentence)


def _replace(above: int, name: str, data: bytes, mode: int | None) -> None:
    made = f".{secrets.token_hex(8)}.upright"
    handle = os.open(made, _NEW, mode=_PLAIN, dir_fd=above)
    try:
        with os.fdopen(handle, "wb") as opened:
            if mode is not None:
                os.fchmod(opened.fileno(), mode)
            opened.write(data)
        os.rename(made, name, src_dir_fd=above, dst_dir_fd=above)
    except BaseException:
        os.unlink(made, dir_fd=above)
        raise


def apply_patch(root: int, patch: bytes) -> dict[str, Any]:
    """Apply a unified diff (``a/`` and ``b/`` before the paths), all of it or nothing.

    Git does it: it goes beyond no link, out of no folder, and into no ``.git``.

    Raises:
        FilesError: it doesn't fit; git's reasons are in the sentence.
    """
    words = ("apply", "--whitespace=nowarn", "--numstat", "--apply")
    done = git.run(root, (*words, "-"), stdin=patch)
    if done.returncode != 0:  # people and models miscount the lines of a hunk
        again = git.run(root, (*words, "--recount", "-"), stdin=patch)
        done = again if again.returncode == 0 else done
    if done.returncode != 0:
        sentence = f"The patch was not applied. {git.said(done)}"
        raise FilesError(sentence)
    rows = [line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines()]
    files = [
        {"path": row[2], "added": row[0], "removed": row[1]} for row in rows if len(row) == _COLUMNS
    ]
    return {"applied": files}


_COLUMNS: Final = 3
