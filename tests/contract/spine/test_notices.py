"""Notices on a real database: who is told in chat what waits for them, once, and who is not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import pytest

from fixtures.held import LIFE_MS, held
from fixtures.still_hub import PULL, StillHub, decided
from upright.api import Destination
from upright.core.outbox import Refused
from upright.core.request import RequestKind
from upright.core.roles import Role
from upright.core.terms import DEFAULT_TERMS
from upright.engine.clock import now_ms
from upright.outward.notices import Notices
from upright.store import accounts, approvers, notices, outbox, pins, requests
from upright.store.outbox import Setback
from upright.store.tables import OUTBOX, REQUEST, SESSION, WORK
from upright.store.unit import Unit

ROOM: Final = Destination(source="slack", kind="room", address=(("room", "D1"),))
HALL: Final = Destination(source="slack", kind="room", address=(("room", "C2"),))
TERMS: Final = replace(
    DEFAULT_TERMS, operators=frozenset({"boss", "ada"}), notify={"boss": ROOM, "ada": HALL}
)
ALONE: Final = replace(TERMS, operators=frozenset({"boss"}), notify={"boss": ROOM})


@pytest.fixture
def told(hub: StillHub) -> StillHub:
    """A hub whose two operators want to be told, each in a room of their own."""
    hub.terms = TERMS
    return hub


async def rows(hub: StillHub, room: str = "") -> list[tuple[str, str]]:
    """Return (room, state) of each notice."""
    found = await hub.rows(OUTBOX, session_id="")
    named = [(str(one["destination"]["address"][0][1]), str(one["state"])) for one in found]
    return [one for one in named if not room or one[0] == room]


# ------------------------------------------------------------------ once, and to whom
@pytest.mark.clause("B14.4", "B15.1")
async def test_each_operator_who_wants_it_is_told_once_of_each_request(told: StillHub) -> None:
    _, request = await held(told)
    assert await told.do(notices.tell) == 2
    assert await told.do(notices.tell) == 0
    assert await rows(told) == [("D1", "pending"), ("C2", "pending")]
    (first, _) = await told.rows(OUTBOX, session_id="")
    assert first["effect_class"] == "reply"
    assert first["expires_at_ms"] == (await told.row(REQUEST))["expires_at_ms"]
    digest = outbox.digest(PULL, "Fixed.")
    for part in (request, "Fixed.", "stranger", digest, f"approve {request} {digest[:10]}"):
        assert part in first["text"]


@pytest.mark.clause("B14.4")
async def test_what_is_settled_before_its_notice_left_is_told_no_more(told: StillHub) -> None:
    _, request = await held(told)
    await told.do(notices.tell)
    (claimed,) = (await told.do(lambda u: outbox.claim_due(u, 1))).taken
    await told.do(lambda u: decided(u, request, "ada", approve=False))
    await told.do(notices.tell)
    states = [state for _, state in await rows(told)]
    assert sorted(states) == ["dead", "sending"]
    assert claimed.idempotency_key.startswith(notices.KEY)


@pytest.mark.clause("B14.4")
async def test_what_nobody_answered_in_time_is_not_told_after_it(told: StillHub) -> None:
    await held(told)
    told.clock.go_on(LIFE_MS / 1000)
    assert await told.do(notices.tell) == 0


@pytest.mark.clause("B14.4")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.ADMIN])
async def test_who_may_not_answer_is_not_told(told: StillHub, role: Role) -> None:
    def outs(u: Unit) -> None:
        accounts.give(u, "boss", role, runs=False)
        if role is Role.ADMIN:
            accounts.revoke(u, "boss")

    await told.do(outs)
    await held(told)
    await told.do(notices.tell)
    assert await rows(told) == [("C2", "pending")]


@pytest.mark.clause("B14.4")
async def test_of_a_private_item_its_owner_alone_is_told_and_not_what_it_says(
    told: StillHub,
) -> None:
    item, request = await held(told)
    mine = WORK.update().where(WORK.c.id == item.id).values(private_to="boss")
    await told.do(lambda u: u.c.execute(mine).rowcount)
    await told.do(notices.tell)
    (notice,) = await told.rows(OUTBOX, session_id="")
    assert notice["destination"]["address"] == [["room", "D1"]]
    assert request in notice["text"]
    assert "Fixed." not in notice["text"]


@pytest.mark.parametrize("kind", RequestKind)
async def test_what_is_settled_by_other_means_is_not_told_in_chat(
    told: StillHub, kind: RequestKind
) -> None:
    await told.do(lambda u: requests.ask(u, requests.Asking(prompt="Which?", kind=kind)))
    await told.do(notices.tell)
    expected = {RequestKind.QUESTION, RequestKind.ACCEPTANCE}
    if kind is not RequestKind.APPROVAL:  # which is always of an effect
        assert bool(await rows(told)) is (kind in expected)


async def test_a_notice_is_no_effect_of_the_item_for_its_worker(told: StillHub) -> None:
    item, _ = await held(told)
    await told.do(notices.tell)
    assert [one.text for one in await told.see(lambda c: outbox.of_work(c, item.id))] == ["Fixed."]
    shown = await told.see(lambda c: pins.of_worker(c, item))
    effects = shown.facts["unsettled_effects"]
    assert isinstance(effects, list)
    assert len(effects) == 1


# ------------------------------------------------------------------ whether somebody was reached
async def fails(hub: StillHub, reason: str = "The channel is gone") -> None:
    """Let every notice that is due be refused for good."""
    for stored in (await hub.do(lambda u: outbox.claim_due(u, 5))).taken:
        setback = Setback(event=Refused(), reason=reason)
        await hub.do(partial(outbox.set_back, stored=stored, setback=setback))


@pytest.mark.clause("B14.4")
async def test_where_no_notice_arrived_the_request_says_so_until_somebody_is_reached(
    hub: StillHub,
) -> None:
    hub.terms = ALONE
    item, request = await held(hub)
    await hub.do(notices.tell)
    assert (await hub.row(REQUEST))["no_route"] == ""
    await fails(hub)
    assert await hub.see(lambda c: notices.is_due(c, ALONE, now_ms(hub.clock)))
    await hub.do(notices.tell)
    assert (await hub.row(REQUEST))["no_route"] == (
        "nobody could be told in chat: The channel is gone"
    )
    assert not await hub.see(lambda c: notices.is_due(c, ALONE, now_ms(hub.clock)))
    await hub.do(lambda u: accounts.give(u, "boss", Role.OPERATOR, runs=False))
    await hub.do(approvers.refresh)
    assert (await hub.row(REQUEST))["no_route"] == ""
    woken = await hub.rows(SESSION, id=item.session)
    assert woken[0]["ready_at_ms"] is None
    assert request


@pytest.mark.clause("B14.4")
async def test_one_of_two_who_was_told_is_a_route(told: StillHub) -> None:
    await held(told)
    await told.do(notices.tell)
    (first, *_) = (await told.do(lambda u: outbox.claim_due(u, 1))).taken
    setback = Setback(event=Refused(), reason="gone")
    await told.do(lambda u: outbox.set_back(u, first, setback))
    await told.do(approvers.refresh)
    assert (await told.row(REQUEST))["no_route"] == ""


# ------------------------------------------------------------------ the loop
@pytest.mark.clause("B14.4")
async def test_the_loop_tells_within_one_look_and_hints_the_sender(told: StillHub) -> None:
    hints: list[int] = []
    loop = Notices(told.units, TERMS, lambda: hints.append(1), sweep_s=60)
    await loop.look()
    assert hints == []
    await held(told)
    await loop.look()
    await loop.look()
    assert (hints, len(await rows(told))) == ([1], 2)
