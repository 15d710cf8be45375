"""Errors: every typed error that people may meet, with its code and its sentence."""

from __future__ import annotations

import inspect
from types import ModuleType

from upright import api
from upright.core import errors as core_errors
from upright.devices import pairing
from upright.engine import ports
from upright.plugin import manifest
from upright.settings import errors as settings_errors
from upright.store import errors as store_errors
from upright.web import oidc, parts
from upright_execd import address, keys
from upright_execd import errors as execd_errors
from upright_execd.verbs import pair
from upright_wire import errors as wire_errors

HUB = (api, core_errors, store_errors, settings_errors, ports, manifest, pairing, parts, oidc)
MODULES = (*HUB, wire_errors, execd_errors, address, keys, pair)


def of(module: ModuleType) -> list[type[Exception]]:
    """Return the errors that a module defines and that have a code, in the order of the source."""
    found = [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Exception)
        and kind.__module__ == module.__name__
        and "code" in vars(kind)
    ]
    return sorted(found, key=lambda kind: inspect.getsourcelines(kind)[1])


def sentence(kind: type[Exception]) -> str:
    """Return the first line of an error's docstring: what people read."""
    return (kind.__doc__ or "").strip().splitlines()[0]


def table() -> str:
    """Return one table of all errors."""
    rows = [
        f"| `{vars(kind)['code']}` | `{kind.__name__}` | {sentence(kind)} | `{module.__name__}` |"
        for module in MODULES
        for kind in of(module)
    ]
    return "\n".join(["| code | error | what it says | where |", "|---|---|---|---|", *rows])
