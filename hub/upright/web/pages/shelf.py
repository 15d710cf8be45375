"""Shelf: templates, texts and small files of the pages, read once when the hub starts."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from upright.core.material import visible
from upright.web.pages import texts
from upright.web.pages.headers import STATIC
from upright.web.pages.texts import Texts
from upright.web.problems import ProblemError

HERE: Final = Path(__file__).parent
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """A small file, whole."""

    body: bytes
    media: str
    tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What pages are made of."""

    templates: Mapping[str, Template]
    texts: Mapping[str, Texts]
    files: Mapping[str, Small]


SHELF: Final = web.AppKey("shelf", Shelf)


def load() -> Shelf:
    """Read everything. This blocks."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_plain,  # what stands on a page is what is there
        auto_reload=False,  # it would look at files on the event loop
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return Shelf(
        templates={name: environment.get_template(name) for name in environment.list_templates()},
        texts=texts.load(),
        files={path.name: _small(path) for path in (HERE / "static").iterdir()},
    )


def _small(path: Path) -> Small:
    body = path.read_bytes()
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return Small(body=body, media=_TYPES[path.suffix], tag=tag)


async def put(app: web.Application) -> None:
    """Fill an application's shelf as it starts."""
    app[SHELF] = await asyncio.to_thread(load)


async def static(request: web.Request) -> web.Response:
    """Send a small file; a browser that has it is told so."""
    name = request.match_info["name"]
    found = request.app[SHELF].files.get(name)
    if found is None:
        raise ProblemError(HTTPStatus.NOT_FOUND, "http.not_found", f"there is no file {name[:80]}")
    headers = {**STATIC, "ETag": found.tag}
    if request.headers.get("If-None-Match") == found.tag:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    return web.Response(body=found.body, content_type=found.media, charset="utf-8", headers=headers)


def _plain(value: object) -> object:
    return visible(value) if type(value) is str else value
