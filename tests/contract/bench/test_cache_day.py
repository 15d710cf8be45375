"""P5 in small: over hubs that are killed and generations that end, no prompt loses its past."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from upright.cli.bench.cache.command import failures, p5, told
from upright.cli.bench.cache.day import Plan, replay
from upright.core.compaction import ContextBounds
from upright.store.memory import Memory

pytestmark = pytest.mark.may_block
SMALL = Plan(sessions=3, triggers=45, hubs=3, bounds=ContextBounds(router=8_000, worker=8_500))


@pytest.mark.clause("B8.1", "B5.5")
def test_a_small_day_busts_nothing_and_sends_again_what_it_can() -> None:
    with Memory() as memory:
        day = replay(SMALL, memory)
    assert (day.busts, day.lost, day.reused) == (0, 0, 1.0)
    assert day.compactions >= 3
    assert day.bills["compaction"].calls >= day.compactions
    assert failures(day) == []
    assert told(day)["US dollars a routed trigger"] > 0


def test_the_command_prints_the_figures() -> None:
    done = CliRunner().invoke(p5, ["--sessions", "1", "--triggers", "4", "--hubs", "1", "--json"])
    assert done.exit_code == 0
    assert '"busts": 0' in done.output
