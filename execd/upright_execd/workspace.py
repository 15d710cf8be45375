"""Workspaces: the folders whose owner lets commands run in them; who is in one is told by inode."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright_execd.errors import DamagedError, NotFoundError, SettingsError
from upright_execd.paths import make_private, write_private

SCRATCH_SUFFIX: Final = ".worktrees"
_MAX_DEPTH: Final = 256
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A listed folder: its real path, and what the owner calls it."""

    path: Path
    label: str

    @property
    def scratch(self) -> Path:
        """Where its worktrees are made: beside it, so that they share its disk."""
        return self.path.with_name(self.path.name + SCRATCH_SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A folder that was looked at and is kept open: what is entered later is this very one.

    ``handle`` is its file descriptor; ``workspace`` is None when it lies in none.
    """

    handle: int
    path: Path
    workspace: Workspace | None


# ------------------------------------------------------------------ the list
def listed(file: Path) -> tuple[Workspace, ...]:
    """Read the list, in the order in which it was made; no file, no workspaces.

    Raises:
        DamagedError: it isn't what ``execd workspace`` writes.
    """
    try:
        rows = json.loads(file.read_bytes())["workspaces"]
        return tuple(Workspace(path=Path(row["path"]), label=row["label"]) for row in rows)
    except FileNotFoundError:
        return ()
    except (ValueError, KeyError, TypeError) as error:
        sentence = f"{file} can't be read as a list of workspaces."
        raise DamagedError(sentence, advice="Delete it and add the workspaces anew.") from error


def add(file: Path, folder: Path, label: str | None) -> Workspace:
    """List a folder under its real path; listing it again only changes its label.

    Raises:
        NotFoundError: there is no such folder.
        SettingsError: it is the root of a file system, or a home: too wide to be a workspace.
    """
    try:
        real = folder.resolve(strict=True)
    except OSError as error:
        sentence = f"There is no folder {folder}."
        raise NotFoundError(sentence) from error
    if not real.is_dir():
        sentence = f"{folder} is not a folder."
        raise NotFoundError(sentence)
    if real == Path(real.anchor) or real == Path.home().resolve():
        sentence = f"{real} is too wide to be a workspace."
        raise SettingsError(sentence, advice="Add the repository's own folder.")
    workspace = Workspace(path=real, label=label or real.name)
    others = [other for other in listed(file) if other.path != real]
    _write(file, [*others, workspace])
    return workspace


def remove(file: Path, name: str) -> Workspace:
    """Take the workspace with this path or label off the list; its files stay.

    Raises:
        NotFoundError: none has it, or several have that label.
    """
    rows = listed(file)
    path = Path(name).absolute()
    found = [row for row in rows if row.path in {path, path.resolve()}]
    found = found or [row for row in rows if row.label == name]
    if len(found) != 1:
        sentence = (
            f"{'No workspace is' if not found else 'Several workspaces are'} called {name!r}."
        )
        raise NotFoundError(sentence, advice="Run: execd workspace ls")
    _write(file, [row for row in rows if row != found[0]])
    return found[0]


def _write(file: Path, rows: Iterable[Workspace]) -> None:
    make_private(file.parent)
    table = {"workspaces": [{"path": str(row.path), "label": row.label} for row in rows]}
    write_private(file, json.dumps(table, indent=2).encode())


# ------------------------------------------------------------------ who is inside
def hold(cwd: str, workspaces: Sequence[Workspace]) -> Held:
    """Open *cwd* (symlinks followed once, here) and find the workspace that it lies in.

    From now on only the handle counts: a folder or link that is swapped on the way changes
    neither what was judged nor what is entered. The caller closes the handle.

    Raises:
        OSError: it isn't there, isn't a folder, or may not be entered.
    """
    handle = os.open(cwd, _FOLDER)
    try:
        chain = frozenset(_identities_upward(handle))
        found = (w for w in workspaces if not chain.isdisjoint(_roots(w)))
        return Held(handle=handle, path=_path_of(handle, cwd), workspace=next(found, None))
    except BaseException:
        os.close(handle)
        raise


def is_in_place(workspace: Workspace) -> bool:
    """Say whether the listed path is still a folder, and none of its parts became a link."""
    return bool(_identity(workspace.path))


def _path_of(handle: int, name: str) -> Path:
    """Return the path of the very folder that is open, as the kernel tells it, else its name's."""
    try:
        return Path(f"/proc/self/fd/{handle}").readlink()
    except OSError:
        return Path(name).resolve()


def _roots(workspace: Workspace) -> frozenset[tuple[int, int]]:
    own = _identity(workspace.path)
    return own | _identity(workspace.scratch) if own else own


def _identity(path: Path) -> frozenset[tuple[int, int]]:
    """Return (device, inode) of a folder that is reached without a link; nothing otherwise."""
    try:
        with _opened(path) as handle:
            found = os.fstat(handle)
        genuine = Path(os.path.realpath(path)) == path and stat.S_ISDIR(found.st_mode)
    except OSError:
        return frozenset()
    return frozenset({(found.st_dev, found.st_ino)}) if genuine else frozenset()


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = os.open(path, _FOLDER | os.O_NOFOLLOW)
    try:
        yield handle
    finally:
        os.close(handle)


def _identities_upward(handle: int) -> Iterator[tuple[int, int]]:
    """Yield (device, inode) of an open folder and of each one above it, up to the root."""
    current, last = os.dup(handle), None
    try:
        for _ in range(_MAX_DEPTH):
            found = os.fstat(current)
            identity = (found.st_dev, found.st_ino)
            if identity == last:
                return
            yield identity
            last = identity
            above = os.open("..", _FOLDER, dir_fd=current)
            os.close(current)
            current = above
    finally:
        os.close(current)
