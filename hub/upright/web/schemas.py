"""Schemas: the forms of answers as JSON Schema, made of the tables where an answer is a row.

An object may always have more keys than its schema names: a client passes over what it does not
know. What a schema names is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from upright.core.mandate import Trust
from upright.store.shape import Kind, keys

Schema = Mapping[str, object]

ANY: Final[Schema] = {}
TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}
NUMBER: Final[Schema] = {"type": "number"}
TRUTH: Final[Schema] = {"type": "boolean"}
TIME: Final[Schema] = {"type": "integer", "description": "Epoch milliseconds, UTC."}
TRUST: Final[Schema] = {"type": "string", "enum": [each.label for each in Trust]}
_OF: Final[Mapping[Kind, Schema]] = {
    Kind.ANY: ANY,
    Kind.TEXT: TEXT,
    Kind.WHOLE: {"type": "integer"},
    Kind.NUMBER: NUMBER,
    Kind.TRUTH: TRUTH,
    Kind.TIME: TIME,
    Kind.TRUST: TRUST,
    Kind.BYTES: {"type": "string", "description": "Bytes in hexadecimal."},
}


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


def row(table: str, *, without: Iterable[str] = (), **more: Schema) -> Schema:
    """Return the schema of a table's row as it is shown, with *more* keys; columns *without*."""
    left_out = frozenset(without)
    shown = {
        key.name: maybe(_OF[key.kind]) if key.nullable else _OF[key.kind]
        for key in keys(table)
        if key.column not in left_out
    }
    return thing(**{**shown, **more})
