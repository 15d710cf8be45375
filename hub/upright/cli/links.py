"""Links: one-time ways in, as they are shown to whoever opens them."""

from __future__ import annotations

from upright.cli.client import Hub
from upright.cli.place import Place


def owners_link(hub: Hub) -> str:
    """Ask a hub on this machine for a one-time link of its owner."""
    done = hub.post("v1", "accounts", "local", "link")
    return f"{hub.url}{done['path']}"


def whole_link(place: Place, said: str) -> str:
    """Return a link as it can be opened: a hub without a public address is where it was asked."""
    return said if "://" in said else f"{place.url()}{said}"
