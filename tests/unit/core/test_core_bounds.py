from __future__ import annotations

from upright.core.bounds import DEFAULT, AgentBounds, Bounds


def test_an_agent_without_bounds_of_its_own_has_those_of_the_others() -> None:
    own = Bounds(children=1)
    known = AgentBounds(others=Bounds(depth=2), of={"qa": own})
    assert known.for_agent("qa") is own
    assert known.for_agent("developer") == Bounds(depth=2)
    assert AgentBounds().for_agent("developer") is DEFAULT
