"""``upright doctor``: every setting with where it came from, and what is wrong with this hub."""

from __future__ import annotations

from typing import Final

import click

from upright.cli import render
from upright.cli.errors import Exit
from upright.cli.findings import CHECKS, Finding, Verdict, failed
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.settings.errors import SettingsError
from upright.settings.load import explain

_MARKS: Final = {
    Verdict.OK: ("✓", "green"),
    Verdict.NOTE: ("•", "yellow"),
    Verdict.FAILED: ("✗", "red"),
}


@click.command()
@click.option("--all", "everything", is_flag=True, help="With the settings that are defaults.")
@as_json
@pass_place
def doctor(place: Place, *, everything: bool, as_json: bool) -> int:
    """Check this hub, and say how to fix it; exits 1 when something must be set right."""
    settings, findings = _look(place)
    if as_json:
        rows = [{"key": key, "value": value, "origin": origin} for key, value, origin in settings]
        checks = [
            {"id": each.id, "verdict": each.verdict.value, "said": each.said, "fix": each.fix}
            for each in findings
        ]
        render.emit_json({"settings": rows, "checks": checks})
    else:
        _emit_settings([row for row in settings if everything or row[2] != "default"])
        for finding in findings:
            _emit(finding)
    bad = any(finding.verdict is Verdict.FAILED for finding in findings)
    return Exit.FAILED if bad else Exit.OK


def _look(place: Place) -> tuple[list[tuple[str, str, str]], list[Finding]]:
    try:
        settings = list(explain(place.settings))
    except SettingsError as error:
        return [], [failed("settings", str(error))]
    return settings, [finding for check in CHECKS for finding in check(place)]


def _emit_settings(rows: list[tuple[str, str, str]]) -> None:
    columns: tuple[render.Column, ...] = (
        ("SETTING", lambda row: row["key"]),
        ("VALUE", lambda row: row["value"]),
        ("FROM", lambda row: row["origin"]),
    )
    named = [{"key": key, "value": value, "origin": origin} for key, value, origin in rows]
    render.emit_table(named, columns, empty="All settings are defaults; --all lists them.")


def _emit(finding: Finding) -> None:
    mark, colour = _MARKS[finding.verdict]
    click.echo(f"{click.style(mark, fg=colour)} {finding.id}: {render.safe(finding.said)}")
    if finding.fix:
        click.echo(f"    fix: {finding.fix}")
