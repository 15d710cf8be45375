"""Described: what a path of the API takes and gives, said beside its handler.

:mod:`upright.web.openapi` writes it down, and a test holds real answers against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeVar

from aiohttp.typedefs import Handler

from upright.web.schemas import TEXT, WHOLE, Schema

H = TypeVar("H", bound=Handler)
_MARK: Final = "described_for_api"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One thing that a path's query may say; an absent one means what the handler's words say."""

    name: str
    kind: Schema
    says: str = ""


def whole(name: str, says: str = "") -> Query:
    """Describe a whole number that is not negative."""
    return Query(name=name, kind=WHOLE, says=says)


def flag(name: str, says: str = "") -> Query:
    """Describe a switch: ``1`` turns it on."""
    return Query(name=name, kind={**TEXT, "enum": ["0", "1"]}, says=says)


def text(name: str, says: str = "") -> Query:
    """Describe a text."""
    return Query(name=name, kind=TEXT, says=says)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What a handler takes and gives.

    ``body`` names the texts of a JSON object, all of them needed. ``gives`` is the form of each
    success as ``media``. ``problems`` are the statuses of errors beside those that every path of
    its kind may answer with.
    """

    gives: Schema = field(default_factory=dict)
    query: tuple[Query, ...] = ()
    body: tuple[str, ...] = ()
    statuses: tuple[int, ...] = (HTTPStatus.OK,)
    problems: tuple[int, ...] = ()
    media: str = JSON
    takes_bytes: bool = False


def described(given: Described) -> Callable[[H], H]:
    """Put a description on a handler; what it does stays as it is."""

    def put(handler: H) -> H:
        setattr(handler, _MARK, given)
        return handler

    return put


def reads(gives: Schema, *query: Query, problems: tuple[int, ...] = ()) -> Callable[[H], H]:
    """Describe a handler that reads."""
    return described(Described(gives=gives, query=query, problems=problems))


def does(
    gives: Schema, *body: str, query: tuple[Query, ...] = (), problems: tuple[int, ...] = ()
) -> Callable[[H], H]:
    """Describe a handler that does something; *body* names the texts that it is sent."""
    return described(Described(gives=gives, body=body, query=query, problems=problems))


def description(handler: object) -> Described | None:
    """Return what was said beside a handler; None when nothing was."""
    found = getattr(handler, _MARK, None)
    return found if isinstance(found, Described) else None


PROBLEM: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": TEXT,
        "status": WHOLE,
        "detail": TEXT,
        "code": {"type": "string", "description": "Stable: what machines look at."},
        "start_at": {**WHOLE, "description": "Where a stream can be taken up, with a 410."},
    },
    "required": ["type", "title", "status", "detail", "code"],
}
"""An RFC 9457 problem."""
