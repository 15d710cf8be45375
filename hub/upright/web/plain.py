"""Plain: values of the hub as JSON, at the edge."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from http import HTTPStatus

import orjson
from aiohttp import web

from upright.api import Secret


def _other(value: object) -> object:
    """Say what orjson does not know by itself."""
    if isinstance(value, Secret):
        raise TypeError("a secret is never shown")
    if is_dataclass(value) and not isinstance(value, type):
        # not orjson's own way, which skips names with an underscore, and knows no redaction
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(type(value).__name__)


_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def encode(value: object) -> bytes:
    """Return *value* as JSON; dataclasses by their fields, bytes as hex, times as epoch ms.

    Raises:
        TypeError: something in it has no JSON form, such as a secret's value.
    """
    return orjson.dumps(value, default=_other, option=_OPTIONS)


def answer(value: object, status: int = HTTPStatus.OK) -> web.Response:
    """Answer with JSON."""
    return web.Response(body=encode(value), status=status, content_type="application/json")
