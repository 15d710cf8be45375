"""Sessions on a real database: leases with epochs, the queue, and who may write (B8.5, A6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fixtures.still_hub import ANN, START_MS, StillHub, trigger
from upright.core.ids import SessionId
from upright.core.mandate import Trust
from upright.core.transcript import Message, Role
from upright.engine.embedded import recover
from upright.store import intake, sessions, turns
from upright.store.errors import LeaseLostError, UnknownIdError
from upright.store.sessions import Claim, Line
from upright.store.tables import ENTRY, SESSION, TURN
from upright.store.unit import Unit

LINE = Line(turn="tu", message=Message(role=Role.USER, text="hello"))


async def ready(hub: StillHub, at_ms: int | None = START_MS) -> SessionId:
    """Make a session that is ready at a time."""

    def unit(u: Unit) -> SessionId:
        made = sessions.create(u, kind="worker", agent="worker", work=None, trust=Trust.MEMBER)
        u.c.execute(SESSION.update().where(SESSION.c.id == made).values(ready_at_ms=at_ms))
        return made

    return await hub.do(unit)


async def wake(hub: StillHub, session: SessionId) -> None:
    await hub.do(lambda u: sessions.wake(u, session))


async def append(hub: StillHub, lease: Claim, message: Message) -> None:
    await hub.do(lambda u: sessions.append(u, lease, Line(turn="tu", message=message)))


async def zombie(hub: StillHub) -> tuple[Claim, Claim]:
    """Return a lease that ran out, and the one that somebody else has now."""
    await ready(hub)
    (old,) = await hub.claim(for_s=10)
    hub.clock.go_on(11)
    (new,) = await hub.claim()
    assert (old.session, old.epoch + 1) == (new.session, new.epoch)
    return old, new


WRITES: list[Callable[[Unit, Claim], object]] = [
    lambda u, lease: sessions.append(u, lease, LINE),
    lambda u, lease: sessions.finish(u, lease, retry_at_ms=None, end=True),
    lambda u, lease: sessions.update(u.c, lease, taint=0),
    turns.begin,
]


@pytest.mark.clause("B8.5")
@pytest.mark.parametrize("write", WRITES, ids=["append", "finish", "update", "begin_turn"])
@pytest.mark.case("DB/804")
async def test_whoever_lost_the_lease_writes_nothing(
    hub: StillHub, write: Callable[[Unit, Claim], object]
) -> None:
    old, _ = await zombie(hub)
    before = await hub.rows(SESSION)
    with pytest.raises(LeaseLostError) as refused:
        await hub.do(lambda u: write(u, old))
    assert (refused.value.session, refused.value.epoch) == (old.session, old.epoch)
    assert await hub.rows(SESSION) == before
    assert await hub.rows(ENTRY) == await hub.rows(TURN) == []


@pytest.mark.clause("B8.5")
async def test_a_lost_lease_takes_the_rest_of_its_unit_with_it(hub: StillHub) -> None:
    old, _ = await zombie(hub)

    def unit(u: Unit) -> None:
        sessions.create(u, kind="worker", agent="worker", work=None, trust=Trust.MEMBER)
        sessions.check(u.c, old)

    with pytest.raises(LeaseLostError):
        await hub.do(unit)
    assert len(await hub.rows(SESSION)) == 1


@pytest.mark.clause("B8.5")
@pytest.mark.case("AE/547")
async def test_renewing_tells_which_leases_are_lost_and_prolongs_the_others(hub: StillHub) -> None:
    old, new = await zombie(hub)
    until = START_MS + 99_000
    lost = await hub.do(lambda u: sessions.renew(u.c, [old, new], until))
    assert lost == [old]
    assert (await hub.row(SESSION))["lease_until_ms"] == until


@pytest.mark.clause("B8.5", "B2.5")
@pytest.mark.case("AE/547")
async def test_a_renewal_that_comes_after_the_turn_leases_nothing_anew(hub: StillHub) -> None:
    await ready(hub)
    (claim,) = await hub.claim()
    await hub.do(lambda u: sessions.finish(u, claim, retry_at_ms=None, end=False))
    assert await hub.do(lambda u: sessions.renew(u.c, [claim], u.now_ms + 99_000)) == []
    await wake(hub, claim.session)
    assert [one.session for one in await hub.claim()] == [claim.session]


async def test_what_has_been_ready_longest_is_claimed_first_within_the_limit(hub: StillHub) -> None:
    late = await ready(hub, START_MS - 10)
    early = await ready(hub, START_MS - 30)
    middle = await ready(hub, START_MS - 20)
    await ready(hub, START_MS + 1)
    await ready(hub, None)
    until = START_MS + 1000
    two = await hub.do(lambda u: sessions.claim(u.c, u.now_ms, until, 2))
    rest = await hub.claim()
    assert [claim.session for claim in (*two, *rest)] == [early, middle, late]


@pytest.mark.clause("B8.5")
@pytest.mark.case("HO/3051")
async def test_a_leased_session_is_claimed_by_nobody_until_its_lease_runs_out(
    hub: StillHub,
) -> None:
    await ready(hub)
    (first,) = await hub.claim(for_s=10)
    hub.clock.go_on(9.999)
    assert await hub.claim() == []
    hub.clock.go_on(0.001)
    (second,) = await hub.claim()
    assert second == Claim(session=first.session, epoch=first.epoch + 1)


async def test_a_wake_never_puts_off_what_is_ready_earlier(hub: StillHub) -> None:
    early, late = await ready(hub, START_MS - 5), await ready(hub, START_MS + 5)
    asleep = await ready(hub, None)
    for session in (early, late, asleep):
        await wake(hub, session)
    found = {row["id"]: row["ready_at_ms"] for row in await hub.rows(SESSION)}
    assert found == {early: START_MS - 5, late: START_MS, asleep: START_MS}


# ------------------------------------------------------------------ the end of a turn
@pytest.mark.clause("B8.4")
async def test_what_came_during_a_turn_makes_the_session_ready_again(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await hub.one(trigger("comment.created", by=ANN))
    (lease,) = await hub.claim()
    taken = await hub.see(lambda c: intake.unread(c, item.session))
    await hub.do(lambda u: intake.taken(u.c, item.session, taken, 1))
    hub.clock.go_on(2.0)
    await hub.one(trigger("comment.created", by=ANN))
    await hub.do(lambda u: sessions.finish(u, lease, retry_at_ms=None, end=False))
    assert [claim.session for claim in await hub.claim()] == [item.session]


async def test_context_that_came_during_a_turn_does_not(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await hub.do(lambda u: sessions.wake(u, item.session))
    (lease,) = await hub.claim()
    await hub.one(trigger("ci.queued"))
    await hub.do(lambda u: sessions.finish(u, lease, retry_at_ms=None, end=False))
    assert await hub.claim() == []
    assert (await hub.see(lambda c: sessions.inbox(c, item.session))).waking == 0


async def test_a_retry_is_claimed_at_its_time_and_not_before(hub: StillHub) -> None:
    session = await ready(hub)
    (lease,) = await hub.claim()
    await hub.do(lambda u: sessions.finish(u, lease, retry_at_ms=u.now_ms + 5_000, end=False))
    assert await hub.see(sessions.next_ready_ms) == START_MS + 5_000
    hub.clock.go_on(4.999)
    assert await hub.claim() == []
    hub.clock.go_on(0.001)
    assert [claim.session for claim in await hub.claim()] == [session]


@pytest.mark.clause("B6.6")
async def test_an_ended_session_is_never_ready_again(hub: StillHub) -> None:
    session = await ready(hub)
    (lease,) = await hub.claim()
    await hub.do(lambda u: sessions.finish(u, lease, retry_at_ms=START_MS, end=True))
    await hub.do(lambda u: sessions.wake(u, session))
    hub.clock.go_on(3600)
    assert await hub.claim() == []
    assert await hub.see(lambda c: sessions.live(c, [session])) == set()


# ------------------------------------------------------------------ a restart
@pytest.mark.clause("B8.6")
@pytest.mark.case("HO/2686")
async def test_a_restart_frees_every_lease_and_the_old_holder_stays_out(hub: StillHub) -> None:
    await ready(hub)
    (old,) = await hub.claim()
    await hub.reopen()
    assert (await hub.do(recover))["leases"] == 1
    (new,) = await hub.claim()
    assert new.epoch == old.epoch + 1
    with pytest.raises(LeaseLostError):
        await hub.do(lambda u: sessions.append(u, old, LINE))


@pytest.mark.clause("B8.1")
async def test_a_transcript_is_read_as_it_was_written_in_its_order(hub: StillHub) -> None:
    session = await ready(hub)
    (lease,) = await hub.claim()
    said = [Message(role=Role.USER, text=f"{n} \U0001f600") for n in range(3)]
    for message in said:
        await append(hub, lease, message)
    await hub.reopen()
    loaded = await hub.see(lambda c: sessions.load(c, session))
    assert list(loaded.messages) == said


async def test_a_session_that_is_not_there_is_said_to_be_unknown(hub: StillHub) -> None:
    with pytest.raises(UnknownIdError):
        await hub.see(lambda c: sessions.load(c, "se_nobody"))


async def test_there_is_one_router(hub: StillHub) -> None:
    assert await hub.router() == await hub.router()
    assert len(await hub.rows(SESSION, kind="router")) == 1
