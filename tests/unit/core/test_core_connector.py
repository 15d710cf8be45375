from __future__ import annotations

from typing import Final

import pytest

from fixtures.laws import law, named, pairs, states
from upright.core.connector import TRANSITIONS, ConnectorEvent, ConnectorState, step
from upright.core.errors import IllegalMoveError

# C0.4: a connector never sets a state; what it raises is mapped here. Only a start leads to ready,
# only a retry leads back to loading, and nothing leads out of stopped.
LAW: Final = """
    loading: Started>ready NotReady>backing_off AuthFailed>needs_auth Broke>failed \
Paused>paused ShutDown>stopped
    ready: NotReady>backing_off AuthFailed>needs_auth Broke>failed Paused>paused ShutDown>stopped
    backing_off: Retried>loading Paused>paused ShutDown>stopped
    needs_auth: Retried>loading Paused>paused ShutDown>stopped
    paused: Retried>loading ShutDown>stopped
    failed: Retried>loading Paused>paused ShutDown>stopped
    stopped
"""


@pairs(ConnectorState, ConnectorEvent)
def test_a_connector_moves_as_the_law_says_and_not_otherwise(
    state: ConnectorState, event: type[ConnectorEvent]
) -> None:
    after = law(LAW).get((state.value, event.__name__))
    if after is None:
        with pytest.raises(IllegalMoveError):
            step(state, event())
    else:
        assert step(state, event()) == after


def test_the_table_holds_the_law_and_no_more() -> None:
    assert named(TRANSITIONS) == law(LAW)
    assert states(LAW) == set(ConnectorState)


def test_a_broken_connector_is_ready_again_only_through_a_new_start() -> None:
    into_ready = {(state, event) for (state, event), after in law(LAW).items() if after == "ready"}
    assert into_ready == {("loading", "Started")}
