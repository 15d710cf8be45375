"""Schemas: the forms of answers as JSON Schema, made of the tables where an answer is a row.

An object may always have more keys than its schema names: a client passes over what it does not
know. What a schema names is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import sqlalchemy as sa

from upright.core.mandate import Trust

Schema = Mapping[str, object]

ANY: Final[Schema] = {}
TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}
NUMBER: Final[Schema] = {"type": "number"}
TRUTH: Final[Schema] = {"type": "boolean"}
TIME: Final[Schema] = {"type": "integer", "description": "Epoch milliseconds, UTC."}
TRUST: Final[Schema] = {"type": "string", "enum": [each.label for each in Trust]}
_KINDS: Final[tuple[tuple[type, Schema], ...]] = (
    (sa.Boolean, TRUTH),
    (sa.Integer, {"type": "integer"}),
    (sa.Float, NUMBER),
    (sa.LargeBinary, {"type": "string", "description": "Bytes in hexadecimal."}),
)
_TRUSTS: Final = frozenset({"trust", "taint"})


def maybe(schema: Schema) -> Schema:
    """Return the schema of something that may be null."""
    kind = schema.get("type")
    if isinstance(kind, str) and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def array(of: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": of}


def mapping(of: Schema) -> Schema:
    """Return the schema of an object whose keys are names."""
    return {"type": "object", "additionalProperties": of}


def thing(**keys: Schema) -> Schema:
    """Return the schema of an object that has at least these keys."""
    return {"type": "object", "properties": keys, "required": sorted(keys)}


def ref(name: str) -> Schema:
    """Return a reference to a named schema (``upright.web.forms.NAMED``)."""
    return {"$ref": f"#/components/schemas/{name}"}


def row(table: sa.Table, *, without: Iterable[str] = (), **more: Schema) -> Schema:
    """Return the schema of a table's row as ``store.plain`` shows it, with *more* keys."""
    left_out = frozenset(without)
    shown = dict(_column(column) for column in table.c if column.name not in left_out)
    return thing(**{**shown, **more})


def _column(column: sa.Column[object]) -> tuple[str, Schema]:
    name = column.name
    if name.endswith("_json"):
        return name.removesuffix("_json"), ANY
    if name in _TRUSTS:
        return name, maybe(TRUST) if column.nullable else TRUST
    found = _kind(column)
    return name, maybe(found) if column.nullable else found


def _kind(column: sa.Column[object]) -> Schema:
    if column.name.endswith("_ms"):
        return TIME
    return next((schema for kind, schema in _KINDS if isinstance(column.type, kind)), TEXT)
