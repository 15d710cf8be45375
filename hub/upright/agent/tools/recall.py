"""Recall: read by id whatever is stored, as far as the mandate goes (B7.4, B7.6)."""

from __future__ import annotations

from typing import Final

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.core.ids import kind_of
from upright.core.recall import page
from upright.store import access, recall, snapshots
from upright.store.errors import NotNowError, UnknownIdError


@arguments(config=STRICT)
class ReadArguments:
    """An id; of what has several parts which one; and from which character on."""

    id: str
    part: str = Field(default="", description="one of the `parts` that a first read names")
    offset: int = Field(default=0, ge=0, description="the `read_on_at` of the page before")


def _read(here: Here, asked: ReadArguments) -> Outcome:
    """Read a page; the first is fresh, and what may change is kept for the next ones.

    It taints as far as what it shows, and wakes nobody.
    """
    kind = kind_of(asked.id) or ""
    if kind not in recall.READERS:
        raise refused("{!r} is not the id of anything that can be read", asked.id)
    if not access.may_read(here.u.c, here.item, kind, asked.id):
        raise refused("there is no {} that you may read", asked.id)
    try:
        shown = recall.show(here.u.c, asked.id, asked.part)
    except UnknownIdError as error:
        raise refused("there is no {}", error.prefix) from error
    try:
        shown = snapshots.begun(
            here.u.c, here.u.now_ms, here.lease.session, shown, offset=asked.offset
        )
    except NotNowError as error:
        raise refused("{}", error) from error
    told = page(shown, asked.offset)
    return Done(body=told, taints=shown.trust, shows=shown.id, private=shown.private)


READ: Final = Tool(
    name="read",
    description="Read whatever has an id, as it is now: what it is, the ids of its relatives, what "
    "stands near, its text. Long texts come in pages: go on at `read_on_at`. A session's earlier "
    "generations are its parts.",
    arguments=ReadArguments,
    run=_read,
)
