"""`execd doctor`: what this machine needs."""

from __future__ import annotations

from dataclasses import asdict

import click

from upright_execd.doctor import Verdict, examine
from upright_execd.verbs.output import as_json, paths_of, print_json


@click.command("doctor")
@as_json
@click.pass_context
def verb(ctx: click.Context, *, is_json: bool) -> None:
    """Check this machine, and say how to fix it; exits 1 when a check fails."""
    findings = list(examine(paths_of(ctx)))
    if is_json:
        print_json({"checks": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            click.echo(f"{finding.verdict:<5} {finding.id:<14} {finding.evidence}")
            if finding.fix:
                click.echo(f"      {'':<14} fix: {finding.fix}")
    if any(finding.verdict is Verdict.FAIL for finding in findings):
        ctx.exit(1)
