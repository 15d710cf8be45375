"""OpenAPI: the API as an OpenAPI 3.1 document, made of its routes and what is said beside them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from aiohttp import web

from upright.web.described import JSON, PROBLEM, Described, Query, described, description
from upright.web.forms import NAMED
from upright.web.needs import NEEDS, OUTSIDE
from upright.web.plain import encode
from upright.web.schemas import TEXT, Schema, thing

Document: TypeAlias = dict[str, Any]  # JSON: whoever reads it knows the specification

VERSION: Final = "1"
DOCUMENT: Final = web.AppKey("openapi", bytes)
_PART: Final = re.compile(r"{(\w+)}")
_ERRORS: Final = 400
_PROBLEM: Final = "application/problem+json"


# ------------------------------------------------------------------ the document
def document(routes: Iterable[web.AbstractRouteDef]) -> Document:
    """Describe every route that has a description; see :func:`bare` for those that have none."""
    paths: dict[str, dict[str, Document]] = {}
    for route, found in _described(routes):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, found)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Upright",
            "version": VERSION,
            "description": "What the command line and the workbench use. An object may have more "
            "keys than its schema names: pass over what you do not know.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {
            "schemas": {**NAMED, "Problem": PROBLEM},
            "responses": {each.name: _problem(each) for each in HTTPStatus if each >= _ERRORS},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "upright"},
            },
        },
    }


def bare(routes: Iterable[web.AbstractRouteDef]) -> list[str]:
    """Name the routes below ``/v1/`` that nothing is said about."""
    return sorted(
        f"{route.method} {route.path}"
        for route in routes
        if isinstance(route, web.RouteDef)
        and route.path.startswith("/v1/")
        and description(route.handler) is None
    )


@described(Described())
async def serve(request: web.Request) -> web.Response:
    """Send this document."""
    return web.Response(body=request.app[DOCUMENT], content_type=JSON)


def written(routes: Iterable[web.AbstractRouteDef]) -> bytes:
    """Return the document as it is sent."""
    return encode(document(routes))


# ------------------------------------------------------------------ one operation
def _described(
    routes: Iterable[web.AbstractRouteDef],
) -> Iterator[tuple[web.RouteDef, Described]]:
    for route in routes:
        if isinstance(route, web.RouteDef):
            found = description(route.handler)
            if found is not None:
                yield route, found


def _operation(route: web.RouteDef, found: Described) -> Document:
    words = inspect.getdoc(route.handler) or ""
    summary, _, more = words.partition("\n")
    need = NEEDS.get(f"{route.method} {route.path}", OUTSIDE)
    is_open = need.role is None
    said: Document = {
        "operationId": _name(route),
        "summary": summary,
        "parameters": [*_places(route.path), *map(_query, found.query)],
        "responses": {**_successes(found), **_problems(route, found, is_open=is_open)},
        "security": [] if is_open else [{"token": []}, {"cookie": []}],
    }
    if need.role is not None:
        said["x-role"] = need.role.word
        said["x-runs-commands"] = need.runs
    if more.strip():
        said["description"] = more.strip()
    if found.body or found.takes_bytes:
        said["requestBody"] = _body(found)
    return said


def _name(route: web.RouteDef) -> str:
    words = [word.strip("{}") for word in route.path.split("/") if word and word != "v1"]
    return "_".join([route.method.lower(), *words]).replace(".", "_")


def _places(path: str) -> list[Document]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {**TEXT, "minLength": 1}}
        for name in _PART.findall(path)
    ]


def _query(query: Query) -> Document:
    said: Document = {"name": query.name, "in": "query", "schema": query.kind}
    return {**said, "description": query.says} if query.says else said


def _body(found: Described) -> Document:
    if found.takes_bytes:
        content: Document = {"*/*": {"schema": {}}}
    else:
        texts: dict[str, Schema] = {
            name: {**TEXT, "minLength": 1, "pattern": r"\S"} for name in found.body
        }
        content = {JSON: {"schema": {**thing(**texts), "additionalProperties": False}}}
    return {"required": True, "content": content}


def _successes(found: Described) -> Document:
    content = {found.media: {"schema": found.gives}} if found.media else {}
    return {
        str(int(status)): {
            "description": HTTPStatus(status).phrase,
            **({"content": content} if content else {}),
        }
        for status in found.statuses
    }


def _problems(route: web.RouteDef, found: Described, *, is_open: bool) -> Document:
    return {
        str(status): {"$ref": f"#/components/responses/{HTTPStatus(status).name}"}
        for status in sorted(_statuses(route, found, is_open=is_open))
        if status not in found.statuses
    }


def _problem(status: HTTPStatus) -> Document:
    content = {_PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": status.phrase, "content": content}


def _statuses(route: web.RouteDef, found: Described, *, is_open: bool) -> set[int]:
    """Return the errors that a path may answer with, by what kind of path it is."""
    statuses = {int(status) for status in found.problems}
    if not is_open:
        statuses |= {400, 401, 403, 421, 429, 503}
    if "{" in route.path:
        statuses |= {404, 409}
    if route.method == "POST":
        statuses |= {404, 409, 422}
    if found.body or found.takes_bytes:
        statuses |= {400, 408, 413, 415}
    return statuses


# ------------------------------------------------------------------ for whoever checks answers
def operations(said: Mapping[str, Any]) -> Iterator[tuple[str, re.Pattern[str], Document]]:
    """Yield (method, pattern of the path, operation) of a document, the exact paths first."""
    paths: Mapping[str, Mapping[str, Document]] = said["paths"]
    for path in sorted(paths, key=lambda one: (one.count("{"), one)):
        pattern = re.compile(_PART.sub("[^/]+", path))
        for method, operation in paths[path].items():
            yield method.upper(), pattern, operation
