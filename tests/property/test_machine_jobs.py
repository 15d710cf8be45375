"""Jobs: reports in any order, twice, late or from a stranger, over links that break anywhere."""

from __future__ import annotations

from typing import Final

import pytest
import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from fixtures.machine_bench import (
    PARTS,
    Event,
    Fault,
    Happenings,
    HubDiedError,
    Tally,
    events,
    never_met,
    pair,
    pairs,
    play,
    rarely_met,
)
from fixtures.machine_jobs import NEVER_BEGAN, OUTCOMES, JobsOfOne
from fixtures.machine_world import NUMBER
from upright.core.job import (
    TRANSITIONS,
    Began,
    JobState,
    StopAsked,
)
from upright.store.errors import StoreUnavailableError

ANY_END: Final = st.sampled_from((*OUTCOMES, OUTCOMES[-1]))
HAPPENS: Final[Happenings] = {
    "queues": (2, {"background": st.booleans()}),
    "pushes": (1, {}),
    "stops": (3, {"n": NUMBER}),
    "ends_at_once": (4, {"n": NUMBER, "end": ANY_END, "stopped": st.booleans()}),
    "links": (1, {}),
    "cuts": (1, {}),
    "cuts_before_the_ack": (7, {"n": NUMBER}),
    "dies": (1, {}),
    "hub_is_heard": (7, {"count": st.integers(1, 3)}),
    "runs": (12, {"n": NUMBER, "size": st.integers(0, 9), "end": ANY_END}),
    "never_begins": (1, {"n": NUMBER, "end": st.sampled_from(NEVER_BEGAN)}),
    "device_is_heard": (8, {"n": NUMBER, "count": st.integers(1, 4)}),
    "repeats": (6, {"n": NUMBER, "back": st.integers(0, 3)}),
    "forgets": (4, {"n": NUMBER}),
    "refuses": (1, {"n": NUMBER}),
    "a_stranger_reports": (1, {"n": NUMBER}),
    "will_fail": (1, {"after": st.integers(0, 2), "fault": st.sampled_from(list(Fault))}),
}


class Jobs(JobsOfOne):
    """What happens to it, by its weight."""

    @initialize()
    def begins(self) -> None:
        super().begins()

    @rule(event=events(HAPPENS))
    def happens(self, event: Event) -> None:
        """One thing happens; what breaks a link, or kills the hub, is made good by the next."""
        try:
            event.on(self)
        except HubDiedError:
            self.dies()
        except StoreUnavailableError:
            self.cuts()

    @invariant()
    def holds(self) -> None:
        super().holds()


RACES: Final = (
    "a stop of what has not left",
    "a stop of what is on its way",
    "a stop and an end race",
    "a command is lost on the link",
    "a link finds commands that run",
    "an end that was stored, and not acknowledged",
    "output comes twice",
    "a second end comes",
    "a device forgets a command",
    "a stranger reports",
)
AS_IT_IS: Final = {
    pair("job", JobState.RUNNING, Began),
    pair("job", JobState.STOPPING, Began),
    pair("job", JobState.STOPPING, StopAsked),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_command_starts_once_and_its_bytes_and_its_end_are_true(
    connection: sa.Connection, part: int, tally: Tally
) -> None:
    met = play(Jobs, connection, part=part, examples=15, steps=60)
    whole = tally.add("commands", part, met)  # a chapter of the work is called Jobs, too
    assert set(never_met(whole, pairs("job", TRANSITIONS))) <= AS_IT_IS
    assert rarely_met(whole, RACES) == {}
