"""Matrix: rooms in by sync, answers out, in the thread.

This module is what the entry point names. It is light: whatever weighs is imported by the
function below when the hub asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from upright.api import Connector, ConnectorType, hookimpl
from upright_matrix.settings import MatrixSettings


def _make(source: str, settings: MatrixSettings) -> Connector:
    module = import_module("upright_matrix.connector")  # aiohttp: only for a named source
    made: Connector = module.MatrixConnector(source, settings)
    return made


@hookimpl
def upright_connectors() -> Iterable[ConnectorType]:
    """Offer the kind ``matrix``."""
    summary = "Matrix: rooms in by sync, answers out, in the thread"
    return (ConnectorType(kind="matrix", summary=summary, settings=MatrixSettings, make=_make),)
