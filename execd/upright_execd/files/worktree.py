"""Worktrees: one a work item, beside the workspace, with one writer (E10.3).

``<workspace>.worktrees/<name>`` is the item's, and ``<name>.lock`` beside it names the item. It is
made on first use and taken away only when nothing in it would be lost; its branch stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from upright_execd.files import beneath, git
from upright_execd.files.errors import FilesError, LockedError, NotHereError

SCRATCH_SUFFIX: Final = ".worktrees"  # as in ``upright_execd.workspace``, which needs more
_PRIVATE: Final = 0o700
_PLACE: Final = getattr(os, "O_PATH", os.O_RDONLY)  # confined, it may be passed and not read
_MAX_LOCK_BYTES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Whose worktree: its name, the item, the branch that is the item's own, where it begins."""

    name: str
    item: str
    branch: str
    base: str

    def __post_init__(self) -> None:
        words = (self.name, self.item, self.branch, self.base)
        if any(not word or word.startswith("-") or "\0" in word for word in words):
            sentence = "A worktree needs a name, an item, a branch and a base."
            raise FilesError(sentence)
        if len(beneath.parts_of(self.name)) != 1:
            sentence = "A worktree's name is one word."
            raise FilesError(sentence)


@contextmanager
def entered(workspace: int, claim: Claim) -> Iterator[int]:
    """Open the item's worktree, made if need be, after its lock is known to be the item's.

    Raises:
        LockedError: another item has it. FilesError: git can't make it; the sentence says why.
    """
    with _scratch(workspace) as scratch:
        _lock(scratch, claim)
        if not _is_there(scratch, claim.name):
            _make(workspace, claim)
        with beneath.folder(scratch, (claim.name,)) as root:
            yield root


@contextmanager
def _scratch(workspace: int) -> Iterator[int]:
    """Open the folder of worktrees beside the workspace that is open."""
    own = beneath.path_of(workspace)
    parent = os.open("..", _PLACE | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=workspace)
    try:
        name = own.name + SCRATCH_SUFFIX
        with suppress(FileExistsError):
            os.mkdir(name, _PRIVATE, dir_fd=parent)
        with beneath.folder(parent, (name,)) as scratch:
            yield scratch
    finally:
        os.close(parent)


def _lock(scratch: int, claim: Claim) -> None:
    """Take the lock for good, or find that it is ours."""
    name = f"{claim.name}.lock"
    try:
        handle = os.open(
            name,
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
            0o600,
            dir_fd=scratch,
        )
    except FileExistsError:
        with beneath.file(scratch, (name,)) as known:
            holder = os.read(known, _MAX_LOCK_BYTES).decode("utf-8", "replace").strip()
        if holder != claim.item:
            sentence = f"The worktree {claim.name} is {holder}'s; it has one writer."
            raise LockedError(sentence) from None
        return
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(f"{claim.item}\n")


def _is_there(scratch: int, name: str) -> bool:
    try:
        with beneath.folder(scratch, (name,)):
            return True
    except NotHereError:
        return False


def _make(workspace: int, claim: Claim) -> None:
    known = git.run(workspace, ("cat-file", "-e", f"{claim.base}^{{commit}}"))
    if known.returncode != 0:
        sentence = f"The commit {claim.base} is not in this clone; run git fetch there first."
        raise NotHereError(sentence)
    own = beneath.path_of(workspace)
    path = f"../{own.name}{SCRATCH_SUFFIX}/{claim.name}"
    exists = git.run(workspace, ("rev-parse", "--verify", "-q", f"refs/heads/{claim.branch}"))
    has_branch = exists.returncode == 0
    what = (path, claim.branch) if has_branch else ("-b", claim.branch, path, claim.base)
    done = git.run(workspace, ("worktree", "add", *what))
    if done.returncode != 0:
        sentence = f"git could not make the worktree. {git.said(done)}"
        raise FilesError(sentence)


def show(root: int, claim: Claim) -> dict[str, Any]:
    """Say where the worktree is, on which commit, and what in it is not committed."""
    head = git.run(root, ("rev-parse", "HEAD")).stdout.decode().strip()
    status = git.run(root, ("status", "--porcelain")).stdout.decode("utf-8", "replace")
    changed = status.splitlines()
    return {
        "path": str(beneath.path_of(root)),
        "branch": claim.branch,
        "head": head,
        "changed": changed[:100],
    }


def remove(workspace: int, claim: Claim) -> dict[str, Any]:
    """Take a worktree away in which nothing would be lost; the branch stays.

    Raises:
        LockedError: it is another item's. FilesError: something in it is not committed.
    """
    with _scratch(workspace) as scratch:
        _lock(scratch, claim)
        if _is_there(scratch, claim.name):
            with beneath.folder(scratch, (claim.name,)) as root:
                changed = show(root, claim)["changed"]
            if changed:
                sentence = f"{len(changed)} files are not committed: {', '.join(changed[:5])}."
                raise FilesError(sentence)
            own = beneath.path_of(workspace)
            path = f"../{own.name}{SCRATCH_SUFFIX}/{claim.name}"
            done = git.run(workspace, ("worktree", "remove", path))
            if done.returncode != 0:
                sentence = f"git did not remove the worktree. {git.said(done)}"
                raise FilesError(sentence)
        os.unlink(f"{claim.name}.lock", dir_fd=scratch)
    return {"removed": claim.name, "branch": claim.branch}
