"""Report of a siege: one JSON object, or some lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from upright.cli.bench.siege.findings import Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a run; ``kills`` are the blows of its mode, ``skipped`` why there was none."""

    mode: str
    database: str
    seed: int
    seconds: float
    kills: int
    landed: int
    answers: Mapping[str, int]
    errors: Mapping[str, int]
    findings: Findings
    failures: tuple[str, ...] = ()
    skipped: str = ""

    def all_failures(self) -> list[str]:
        """Say what makes the run a failure; nothing when all is well."""
        found = [*self.findings.all(), *self.failures]
        if self.landed < self.kills and not self.skipped:
            found.append(f"{self.kills - self.landed} of {self.kills} did not land")
        return found

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        findings = self.findings
        return {
            "mode": self.mode,
            "database": self.database,
            "skipped": self.skipped,
            "kills": self.kills,
            "landed": self.landed,
            "acknowledged": findings.acknowledged,
            "lost": len(findings.lost),
            "doubled": len(findings.doubled),
            "stuck": len(findings.stuck),
            "broken": len(findings.broken),
            "whole": findings.whole,
            "items": findings.items,
            "effects": findings.effects,
            "unknown": findings.unknown,
            "inside_turn": findings.inside_turn,
            "sending": findings.sending,
            "cut": findings.cut,
            "answers": dict(sorted(self.answers.items())),
            "errors": dict(sorted(self.errors.items())),
            "seconds": round(self.seconds, 1),
            "seed": self.seed,
            "failures": self.all_failures(),
        }

    def lines(self) -> Iterator[str]:
        """Yield the sums, and each failure."""
        told = self.as_json()
        if self.skipped:
            yield f"skipped: {self.skipped}"
            return
        yield (
            f"{self.mode} on {self.database}: {told['landed']} of {told['kills']} landed in"
            f" {told['seconds']} s, {told['inside_turn']} inside a turn,"
            f" {told['sending']} inside a send"
        )
        yield (
            f"{told['acknowledged']} acknowledged, {told['lost']} lost, {told['doubled']} doubled,"
            f" {told['stuck']} stuck; whole {told['whole']} times, broken {told['broken']}"
        )
        yield (
            f"{told['items']} items, {told['effects']} effects, {told['unknown']} of them unknown;"
            f" answers {told['answers']}, errors logged {told['errors']} (seed {self.seed})"
        )
        for failure in told["failures"]:
            yield f"FAILED: {failure}"
