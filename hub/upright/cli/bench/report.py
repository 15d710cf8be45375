"""Report: what came of a run, as one JSON object and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from upright.cli.bench.draw import Tally
from upright.cli.bench.stops import STEPS, Side, Victim
from upright.cli.bench.verdict import Findings

COVERS: Final = 2
"""From this many kills for each place on, a place that was not met is a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a run."""

    seed: int
    seconds: float
    stories: int
    tally: Tally
    findings: Findings

    @property
    def covers(self) -> bool:
        """Whether so many kills were wanted that every place must have been met."""
        return self.tally.wanted >= COVERS * len(self.tally.places)

    def failures(self) -> list[str]:
        """Say what makes the run a failure; nothing when all is well."""
        found = [*self.findings.lost, *self.findings.doubled, *self.findings.stuck]
        if self.tally.left:
            found.append(f"{self.tally.left} kills did not land")
        if self.covers:
            found += [f"no kill landed at {one}" for one in self._missed()]
        return found

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        tally, findings = self.tally, self.findings
        return {
            "kills": tally.wanted,
            "landed": tally.landed,
            "acknowledged": findings.acknowledged,
            "lost": len(findings.lost),
            "doubled": len(findings.doubled),
            "stuck": len(findings.stuck),
            "by_stop": self._by_stop(),
            "missed": self._missed(),
            "covers": self.covers,
            "inside_turn": tally.inside_turn,
            "between_receipt_and_answer": tally.between,
            "stories": self.stories,
            "seconds": round(self.seconds, 1),
            "seed": self.seed,
            "failures": self.failures(),
        }

    def lines(self) -> Iterator[str]:
        """Yield the table and the sums, line by line."""
        yield f"{'A3':>2}  {'victim':<14} {'stop':<18} {'before':>6} {'after':>6} {'during':>6}"
        for victim, stops in self._by_stop().items():
            for stop, sides in stops.items():
                counts = " ".join(f"{sides.get(side.value, '-'):>6}" for side in Side)
                yield f"{STEPS[stop]:>2}  {victim:<14} {stop:<18} {counts}"
        told = self.as_json()
        yield (
            f"{told['landed']} kills landed in {told['stories']} stories and {told['seconds']} s:"
            f" {told['inside_turn']} inside a turn,"
            f" {told['between_receipt_and_answer']} between receipt and answer"
        )
        yield (
            f"{told['acknowledged']} acknowledged, {told['lost']} lost,"
            f" {told['doubled']} doubled, {told['stuck']} stuck (seed {self.seed})"
        )
        if told["missed"] and not self.covers:
            yield f"too few kills to meet every place: {len(told['missed'])} were not met"
        for failure in told["failures"]:
            yield f"FAILED: {failure}"

    def _by_stop(self) -> dict[str, dict[str, dict[str, int]]]:
        counts: dict[str, dict[str, dict[str, int]]] = {victim.value: {} for victim in Victim}
        order = list(STEPS)
        for place in sorted(self.tally.places, key=lambda one: order.index(one.stop)):
            sides = counts[place.victim.value].setdefault(place.stop, {})
            sides[place.side.value] = self.tally.met[place]
        return {victim: stops for victim, stops in counts.items() if stops}

    def _missed(self) -> list[str]:
        return [f"{one.victim}: {one.stop} {one.side}" for one in self.tally.missed()]
