"""Home: which files an agent's home holds, how its catalogue reads, and whose edit counts (B17)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upright.core.errors import InvalidError
from upright.core.mandate import Trust

GUIDE: Final = "AGENTS.md"
WORKER: Final = "developer"
"""The agent of an item for which no other one was named."""
FRONT: Final = "---"
MAX_NAME: Final = 31
MAX_GUIDE_BYTES: Final = 16 * 1024  # it stands in every prompt
MAX_FILE_BYTES: Final = 64 * 1024
MAX_FILES: Final = 200
MAX_HOME_BYTES: Final = 1024 * 1024
MAX_DESCRIPTION: Final = 300
SHOWN_DIGITS: Final = 12  # of a skill's digest

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z")
_SLUG: Final = r"[a-z0-9]+(?:[-_][a-z0-9]+)*"
_NOTE: Final = re.compile(rf"notes/{_SLUG}\.md\Z")
_SKILL: Final = re.compile(rf"skills/({_SLUG})/SKILL\.md\Z")
_MAX_PATH: Final = 100


class FileKind(StrEnum):
    """What a file of a home is."""

    GUIDE = "guide"  # AGENTS.md: role, defaults, limits
    NOTE = "note"
    SKILL = "skill"


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFile:
    """One version of a file; ``trust`` is that of whoever wrote it, or of what they had read."""

    path: str
    version: int
    text: str
    sha256: str
    author: str
    trust: Trust
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """What the catalogue says of a skill; ``declares`` are the other keys of its front matter."""

    name: str
    description: str
    declares: tuple[tuple[str, str], ...] = ()


# ------------------------------------------------------------------ what may stand where
def check_name(name: str) -> None:
    """Refuse what is no agent's name: it names a folder, too.

    Raises:
        InvalidError: it is not lower case letters, digits and single dashes.
    """
    if len(name) > MAX_NAME or not _NAME.match(name):
        raise InvalidError(agent=repr(name[:40]), must_be="a-z, 0-9 and single dashes")


def kind_of(path: str) -> FileKind:
    """Say what a path of a home is: every other one is refused, whatever it points at.

    Raises:
        InvalidError: it is neither AGENTS.md, notes/NAME.md nor skills/NAME/SKILL.md.
    """
    if path == GUIDE:
        return FileKind.GUIDE
    if len(path) <= _MAX_PATH and _NOTE.match(path):
        return FileKind.NOTE
    if len(path) <= _MAX_PATH and _SKILL.match(path):
        return FileKind.SKILL
    must_be = "AGENTS.md, notes/NAME.md or skills/NAME/SKILL.md"
    raise InvalidError(path=repr(path[:_MAX_PATH]), must_be=must_be)


def check_file(path: str, text: str) -> None:
    """Refuse a file that has no place in a home, is too large, or is no skill.

    Raises:
        InvalidError: which, and why.
    """
    kind = kind_of(path)
    most = MAX_GUIDE_BYTES if kind is FileKind.GUIDE else MAX_FILE_BYTES
    size = len(text.encode())
    if size > most:
        raise InvalidError(path=path, bytes=size, most=most)
    if kind is FileKind.SKILL:
        skill(path, text)


def check_room(others: Mapping[str, int], path: str, size: int) -> None:
    """Refuse a file that a home has no room for; *others* are its files' sizes in bytes.

    Raises:
        InvalidError: there would be too many, or too much.
    """
    after = {**others, path: size}
    if len(after) > MAX_FILES:
        raise InvalidError(path=path, files=len(after), most=MAX_FILES)
    if sum(after.values()) > MAX_HOME_BYTES:
        raise InvalidError(path=path, bytes=sum(after.values()), most=MAX_HOME_BYTES)


# ------------------------------------------------------------------ front matter
def front_matter(text: str) -> tuple[dict[str, str], str]:
    """Split ``key: value`` lines between two ``---`` lines from what follows; none is no error."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != FRONT:
        return {}, text
    end = next((n for n, line in enumerate(lines[1:], start=1) if line.strip() == FRONT), None)
    if end is None:
        return {}, text
    pairs = (line.partition(":") for line in lines[1:end])
    known = {key.strip(): value.strip() for key, colon, value in pairs if colon}
    return known, "\n".join(lines[end + 1 :]).strip()


def skill(path: str, text: str) -> Skill:
    """Read what a skill says of itself.

    Raises:
        InvalidError: it has no name, another one than its folder, or no description.
    """
    known, _ = front_matter(text)
    folder = path.split("/")[1]
    if known.get("name") != folder:
        raise InvalidError(path=path, name=repr(known.get("name", "")), must_be=folder)
    described = known.get("description", "")
    if not described or len(described) > MAX_DESCRIPTION:
        raise InvalidError(path=path, description=f"1 to {MAX_DESCRIPTION} characters are needed")
    more = tuple((key, known[key]) for key in known if key not in {"name", "description"})
    return Skill(name=folder, description=described, declares=more)


def role_of(guide: str) -> str:
    """Return what AGENTS.md says of its agent in one line; empty when it says nothing."""
    return front_matter(guide)[0].get("description", "")[:MAX_DESCRIPTION]


# ------------------------------------------------------------------ what the prompt holds
def catalogue(agent: str, files: Sequence[HomeFile]) -> str:
    """Write what the system message holds of a home: the guide, skills and notes, in order.

    Skills and notes are named, and read on demand; a skill with the beginning of its digest. Of a
    note the name alone stands here: what it says was not written by the home's owner.
    """
    by_kind: dict[FileKind, list[HomeFile]] = {kind: [] for kind in FileKind}
    for file in sorted(files, key=lambda one: one.path):
        by_kind[kind_of(file.path)].append(file)
    parts = [f"You are the agent {agent}."]
    parts += [front_matter(guide.text)[1] for guide in by_kind[FileKind.GUIDE]]
    if by_kind[FileKind.SKILL]:
        parts.append(
            "Skills (call `skill` to read one; under this sha256 it is your owner's word):"
        )
        parts += [_line(file) for file in by_kind[FileKind.SKILL]]
    if by_kind[FileKind.NOTE]:
        parts.append("Your notes (call `read_note` to read one; they are material):")
        parts += [f"- {file.path} (trust={file.trust.label})" for file in by_kind[FileKind.NOTE]]
    return "\n".join(parts) + "\n"


def _line(file: HomeFile) -> str:
    told = skill(file.path, file.text)
    return f"- {told.name} (sha256 {file.sha256[:SHOWN_DIGITS]}): {told.description}"


# ------------------------------------------------------------------ whose edit counts
class Move(StrEnum):
    """What is done about a file that the folder and the store may tell differently."""

    NOTHING = "nothing"
    TAKE_IN = "take_in"  # the folder's text becomes a version
    FORGET = "forget"  # it was deleted in the folder
    LAY_OUT = "lay_out"  # the store's text is written to the folder
    REMOVE = "remove"  # it was deleted in the store
    CONFLICT = "conflict"  # both changed: the folder's is taken in, the other one laid beside it


def move(base: str | None, disk: str | None, stored: str | None) -> Move:
    """Decide by digests: *base* is what was last the same in both places; None: not there.

    What one side changed wins over what the other left alone, and over its deletion.
    """
    if disk == stored:
        return Move.NOTHING
    if disk == base:
        return Move.REMOVE if stored is None else Move.LAY_OUT
    if stored == base:
        return Move.FORGET if disk is None else Move.TAKE_IN
    if disk is None:
        return Move.LAY_OUT
    return Move.TAKE_IN if stored is None else Move.CONFLICT
