"""The program for files: one request by argv, input on stdin, one line of JSON as the answer.

``python -I -S …/files/run.py OPERATION REQUEST``; the folder is where it was started, which the
daemon has judged. REQUEST is JSON: the operation's own arguments, and ``worktree``: whose it is.
Exit codes: 0 done, 1 refused (``error`` and ``code`` say why), 2 not understood.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from upright_execd.files import reading, worktree, writing
from upright_execd.files.errors import FilesError
from upright_execd.files.worktree import Claim

DONE, REFUSED, NOT_UNDERSTOOD = 0, 1, 2
Request = Mapping[str, Any]
Operation = Callable[[int, Request, bytes], dict[str, Any]]


def _read_file(root: int, asked: Request, _: bytes) -> dict[str, Any]:
    limit = int(asked.get("limit", reading.MAX_LINES))
    return reading.read_file(root, asked["path"], offset=int(asked.get("offset", 1)), limit=limit)


def _list(root: int, asked: Request, _: bytes) -> dict[str, Any]:
    return reading.list_folder(root, asked.get("path", ""), depth=int(asked.get("depth", 1)))


def _search(root: int, asked: Request, _: bytes) -> dict[str, Any]:
    path, glob = asked.get("path", ""), asked.get("glob", "")
    return reading.search(root, asked["pattern"], path=path, glob=glob)


def _write_file(root: int, asked: Request, data: bytes) -> dict[str, Any]:
    expected = asked.get("expected_sha256")
    return writing.write_file(root, asked["path"], data, expected_sha256=expected)


def _apply_patch(root: int, _: Request, data: bytes) -> dict[str, Any]:
    return writing.apply_patch(root, data)


OPERATIONS: Final[Mapping[str, Operation]] = {
    "read_file": _read_file,
    "list": _list,
    "search": _search,
    "write_file": _write_file,
    "apply_patch": _apply_patch,
}


def answer(workspace: int, operation: str, asked: Request, data: bytes) -> dict[str, Any]:
    """Do one thing in the item's worktree of the open *workspace*.

    Raises:
        FilesError: it can't be done. LookupError, TypeError, ValueError: it isn't understood.
    """
    claim = Claim(**asked["worktree"])
    if operation == "remove_worktree":
        return worktree.remove(workspace, claim)
    with worktree.entered(workspace, claim) as root:
        if operation == "worktree":
            return worktree.show(root, claim)
        return OPERATIONS[operation](root, asked, data)


def main(words: list[str]) -> int:
    """Answer one request; return the exit code."""
    workspace = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    code, said = REFUSED, dict[str, Any]()
    try:
        operation, request = words
        said = answer(workspace, operation, json.loads(request), sys.stdin.buffer.read())
        code = DONE
    except FilesError as error:
        said = {"error": error.sentence, "code": error.word}
    except OSError as error:
        said = {"error": f"{error.strerror}.", "code": "system"}
    except (LookupError, TypeError, ValueError) as error:
        code, said = NOT_UNDERSTOOD, {"error": f"not understood: {error}", "code": "request"}
    sys.stdout.write(json.dumps(said) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
