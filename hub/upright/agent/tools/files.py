"""Files: read, write, patch, list and search in the item's worktree, by the device's own program.

Each call is a command of a fixed argv, JSON in and out, and so a job like any other: judged by the
owner's rules, confined as tightly as the device can, and answered by what the program says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent import card
from upright.agent.tools import where
from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.agent.tools.commands import Ordered, queue
from upright.core.job import Job
from upright.core.work import WorkItem
from upright.store import output, work
from upright.store.unit import Connection
from upright_wire.command import Ending
from upright_wire.errors import WireError
from upright_wire.spec import Spec, Stdin

TIMEOUT_MS: Final = 60_000
MAX_ANSWER_BYTES: Final = 64 * 1024
PATH: Final = "beneath the worktree, without links"


@arguments(config=STRICT)
class ReadArguments:
    """Lines of a text file."""

    path: str = Field(min_length=1, description=PATH)
    offset: int = Field(default=1, ge=1, description="the first line, from 1")
    limit: int = Field(default=2000, ge=1, le=2000, description="lines at most")


@arguments(config=STRICT)
class WriteArguments:
    """A whole file."""

    path: str = Field(min_length=1, description=PATH)
    text: str = Field(max_length=1_000_000)
    expected_sha256: str | None = Field(
        default=None, description="what read_file said; empty: there must be no such file yet"
    )


@arguments(config=STRICT)
class PatchArguments:
    """A unified diff with a/ and b/ before its paths."""

    patch: str = Field(min_length=1, max_length=1_000_000)


@arguments(config=STRICT)
class ListArguments:
    """A folder."""

    path: str = Field(default="", description=PATH)
    depth: int = Field(default=1, ge=1, le=5)


@arguments(config=STRICT)
class SearchArguments:
    """A regular expression, and where to look for it."""

    pattern: str = Field(min_length=1, max_length=1000, description="a Python regular expression")
    path: str = Field(default="", description=PATH)
    glob: str = Field(default="", description="of file names, as *.py")


@arguments(config=STRICT)
class WorktreeArguments:
    """The item's worktree."""

    remove: bool = Field(default=False, description="take it away; everything must be committed")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    operation: str
    given: Mapping[str, Any]
    stdin: bytes = b""


def _ask(here: Here, request: _Request) -> Outcome:
    """Queue the program with one request, in the workspace that has the item's worktree."""
    item = here.own_item()
    said = where.decision(here, item)
    place = where.place(here, item)
    if isinstance(place, Done):
        return place
    if not place.files:
        raise refused("{} has no program for files; use run, with git and cat", place.name)
    body = {"worktree": _claim(item, card.place(item, place).worktree), **request.given}
    stdin = request.stdin
    try:
        spec = Spec(
            argv=(*place.files, request.operation, json.dumps(body, ensure_ascii=False)),
            cwd=place.path,
            stdin=Stdin(bytes=len(stdin), sha256=hashlib.sha256(stdin).hexdigest()),
            timeout_ms=TIMEOUT_MS,
            confinement=where.tightest(said, place),
        )
    except WireError as error:
        raise refused("that can't be sent: {}", error) from error
    return queue(here, item, Ordered(spec=spec, stdin=stdin, device=place.device))


def _claim(item: WorkItem, worktree: str) -> dict[str, str]:
    return {
        "name": worktree.rpartition("/")[2],
        "item": item.id,
        "branch": work.own_branch(item.id),
        "base": (item.code.sha if item.code else "") or "HEAD",
    }


def _read_file(here: Here, asked: ReadArguments) -> Outcome:
    given = {"path": asked.path, "offset": asked.offset, "limit": asked.limit}
    return _ask(here, _Request(operation="read_file", given=given))


def _write_file(here: Here, asked: WriteArguments) -> Outcome:
    given = {"path": asked.path}
    if asked.expected_sha256 is not None:
        given["expected_sha256"] = asked.expected_sha256
    data = asked.text.encode("utf-8", "surrogatepass")
    return _ask(here, _Request(operation="write_file", given=given, stdin=data))


def _apply_patch(here: Here, asked: PatchArguments) -> Outcome:
    patch = asked.patch if asked.patch.endswith("\n") else f"{asked.patch}\n"
    data = patch.encode("utf-8", "surrogatepass")
    return _ask(here, _Request(operation="apply_patch", given={}, stdin=data))


def _list(here: Here, asked: ListArguments) -> Outcome:
    given = {"path": asked.path, "depth": asked.depth}
    return _ask(here, _Request(operation="list", given=given))


def _search(here: Here, asked: SearchArguments) -> Outcome:
    given = {"pattern": asked.pattern, "path": asked.path, "glob": asked.glob}
    return _ask(here, _Request(operation="search", given=given))


def _worktree(here: Here, asked: WorktreeArguments) -> Outcome:
    operation = "remove_worktree" if asked.remove else "worktree"
    return _ask(here, _Request(operation=operation, given={}))


def answer(c: Connection, job: Job, tool: str) -> dict[str, Any] | None:
    """Return what the program said, labelled as material; None: say what the job did instead."""
    if tool not in _NAMES or job.outcome != Ending.EXITED.value:
        return None
    _, data = output.read(c, output.Stream(job.id, "stdout"), 0, MAX_ANSWER_BYTES)
    try:
        said = json.loads(data)
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    trust = output.trust(work.read(c, job.work))
    return {"job": job.id, "material": "file", "trust": trust.label, **said}


TOOLS: Final = (
    Tool(
        name="read_file",
        description="Read lines of a text file in the item's worktree, with its sha256.",
        arguments=ReadArguments,
        run=_read_file,
    ),
    Tool(
        name="write_file",
        description="Write a whole file in the item's worktree, in one step. With expected_sha256 "
        "it is refused when the file changed since you read it.",
        arguments=WriteArguments,
        run=_write_file,
    ),
    Tool(
        name="apply_patch",
        description="Apply a unified diff in the item's worktree: all of it, or nothing.",
        arguments=PatchArguments,
        run=_apply_patch,
    ),
    Tool(
        name="list",
        description="List a folder of the item's worktree.",
        arguments=ListArguments,
        run=_list,
    ),
    Tool(
        name="search",
        description="Find lines by a regular expression in the worktree's files.",
        arguments=SearchArguments,
        run=_search,
    ),
    Tool(
        name="worktree",
        description="See the item's worktree (made on first use, on a branch of its own): its "
        "commit, and what is not committed; or remove it when nothing would be lost.",
        arguments=WorktreeArguments,
        run=_worktree,
    ),
)
_NAMES: Final = frozenset(tool.name for tool in TOOLS)
