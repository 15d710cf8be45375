"""``upright plugin``: what is installed, read from the manifests; nothing of it is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import click

from upright.cli import render
from upright.cli.client import AnsweredError, UnreachableError
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.plugin.manifest import Listed, installed, listed


@click.group()
def plugin() -> None:
    """List what is installed."""


@plugin.command()
@as_json
@pass_place
def ls(place: Place, as_json: bool) -> None:
    """List plugins: kinds, quality, whether a source uses it, and why it fails."""
    rows = list(_rows(place))
    if as_json:
        render.emit_json(rows)
        return
    columns: tuple[render.Column, ...] = (
        ("NAME", lambda row: row["name"]),
        ("KINDS", lambda row: ", ".join(row["kinds"])),
        ("QUALITY", lambda row: row["quality"]),
        ("STATE", lambda row: render.state(row["state"])),
        ("SOURCES", lambda row: ", ".join(row["sources"])),
        ("REASON", lambda row: row["reason"]),
    )
    render.emit_table(rows, columns, empty="No plugin is installed.")


def _rows(place: Place) -> Iterator[dict[str, object]]:
    failures = _failures(place)
    used: dict[str, list[str]] = {}
    for name, source in place.settings.sources.items():
        if source.enabled:
            used.setdefault(source.connector, []).append(name)
    for one in listed(installed()):
        yield _row(one, used, failures)


def _row(
    one: Listed, used: Mapping[str, list[str]], failures: Mapping[str, str]
) -> dict[str, object]:
    kinds = one.manifest.kinds if one.manifest else ()
    sources = [name for kind in kinds for name in used.get(kind, ())]
    reason = one.problem or next((failures[name] for name in sources if name in failures), "")
    state = "failed" if reason else "in use" if sources else "not used"
    return {
        "name": one.entry.name,
        "kinds": list(kinds),
        "quality": one.manifest.quality if one.manifest else "",
        "summary": one.manifest.summary if one.manifest else "",
        "state": state,
        "sources": sources,
        "reason": reason,
    }


def _failures(place: Place) -> dict[str, str]:
    """Return why sources have failed, as far as a running hub tells it."""
    rows: list[dict[str, Any]] = []
    with suppress(UnreachableError, AnsweredError):
        rows = place.hub.get("v1", "sources")
    return {row["name"]: row["reason"] for row in rows if row["state"] == "failed"}
