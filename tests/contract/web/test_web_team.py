"""What is somebody's own, and what everybody did: private items, and the audit trail (S5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest
import sqlalchemy as sa

from fixtures.store_rows import put, session, work
from fixtures.team import Person, browser, give
from fixtures.web_hub import Client
from upright.core.work import WorkState
from upright.store import privacy, relations
from upright.store.errors import NotNowError
from upright.store.relations import RelationKind
from upright.store.tables import EVENT, TRIGGER, WORK
from upright.store.tables_people import AUDIT
from upright.store.tables_world import Event

CHILD_OF: Final = RelationKind.CHILD_OF
HIDDEN: Final = (
    "wk_fix",
    "se_fix",
    "tr_red",
    "tr_green",
    "rq_branch",
    "ob_fixed",
    "jb_test",
    "wt_ci",
    "tu_fix",
    "tu_router",
)


@pytest.fixture
async def ann(client: Client) -> AsyncIterator[Person]:
    """Ann opened wk_fix, and has made it hers alone."""
    mine = TRIGGER.update().where(TRIGGER.c.id == "tr_red").values(person="ann")
    await client.behind.store.write(lambda c: c.execute(mine).rowcount)
    await give(client, "ann", "operator")
    person = await browser(client, "ann")
    status, said = await person.post("/v1/work/wk_fix/private")
    assert (status, said) == (200, {"work": "wk_fix", "private": True})
    client.behind.asked.clear()
    yield person
    await person.session.close()


@pytest.fixture
async def bob(client: Client, ann: Person) -> AsyncIterator[Person]:
    """Bob may everything that anybody may."""
    await give(client, "bob", "admin", runs="yes")
    person = await browser(client, "bob")
    yield person
    await person.session.close()


@pytest.fixture
async def item_of_all(client: Client) -> None:
    """Open an item that everybody sees, whose ids begin like those of ann's."""
    item = work("wk_fig", WorkState.WAITING_EXTERNAL, trigger_id="tr_star")
    rows = session("se_fig", work="wk_fig"), item
    await client.behind.store.write(lambda c: put(c, *rows))


# ------------------------------------------------------------------ private items
@pytest.mark.case("OC/47849")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/work/wk_fix",
        "/v1/work/wk_f",
        "/v1/show/wk_fix",
        "/v1/show/se_fix",
        "/v1/show/jb_test",
        "/v1/show/tr_red",
        "/v1/why/wk_fix",
        "/v1/why/tr_red",
        "/v1/triggers/tr_green",
        "/v1/triggers/tr_red/neighbours",
        "/v1/raw/tr_red",
        "/v1/replay?trigger=tr_red",
        "/v1/sessions/se_fix",
        "/v1/sessions/se_fix/entries",
        "/v1/outbox/ob_fixed",
        "/v1/requests/rq_branch",
    ],
)
async def test_what_is_somebodys_own_is_not_there_for_others(
    ann: Person, bob: Person, path: str
) -> None:
    status, said = await bob.get(path)
    assert (status, said["code"]) == (404, "store.unknown_id")
    assert (await ann.get(path))[0] == 200


@pytest.mark.case("OC/47849")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/requests/rq_branch/answer", {"text": "yes"}),
        ("/v1/requests/rq_branch/approve", None),
        ("/v1/requests/rq_branch/deny", None),
        ("/v1/sessions/se_fix/say", {"text": "spend"}),
        ("/v1/sessions/se_fix/interrupt", {"text": "spend"}),
        ("/v1/sessions/se_fix/stop", None),
        ("/v1/work/wk_fix/cancel", None),
        ("/v1/work/wk_fix/unblock", None),
        ("/v1/work/wk_fix/move", {"device": "dv_box"}),
        ("/v1/work/wk_fix/share", None),
        ("/v1/waits/wt_ci/wake", None),
        ("/v1/outbox/ob_fixed/retry", None),
        ("/v1/triggers/tr_red/again", None),
        ("/v1/work/w/cancel", None),
        ("/v1/work/wk_/cancel", None),
        ("/v1/follows", {"session": "se_fix", "thread": "th_pr"}),
        ("/v1/follows", {"session": "se_f", "thread": "th_pr"}),
        ("/v1/follows", b'{"session": "\\u0073e_fix", "thread": "th_pr"}'),
    ],
)
async def test_nobody_approves_spends_or_speaks_in_somebody_elses_item(
    client: Client, bob: Person, path: str, body: object
) -> None:
    status, said = await bob.post(path, body)
    assert (status, said["code"]) == (404, "store.unknown_id")
    assert client.behind.asked == []


@pytest.mark.parametrize(
    ("path", "gets"),
    [
        ("/v1/work/wk_fi", (409, 200)),
        ("/v1/show/wk_fi", (409, 200)),
        ("/v1/why/wk_fi", (409, 200)),
        ("/v1/sessions/se_fi", (409, 200)),
        ("/v1/triggers/tr_", (409, 200)),
        ("/triggers/tr_", (409, 200)),
        ("/v1/raw/tr_", (409, 200)),
        ("/v1/replay?trigger=tr_", (409, 200)),
        ("/v1/work/wk_fix", (200, 404)),
        ("/v1/sessions/se_fix", (200, 404)),
        ("/v1/requests/rq_b", (200, 404)),
        ("/v1/work/nothing", (404, 404)),
    ],
)
@pytest.mark.usefixtures("item_of_all")
async def test_what_is_hidden_makes_no_unfinished_id_ambiguous_or_missing(
    ann: Person, bob: Person, path: str, gets: tuple[int, int]
) -> None:
    own, _ = await ann.get(path)
    status, said = await bob.get(path)
    assert (own, status) == gets
    assert [each for each in HIDDEN if each in str(said) and each not in path] == []


@pytest.mark.usefixtures("item_of_all")
async def test_a_body_names_with_an_unfinished_id_only_what_who_asks_may_see(
    ann: Person, bob: Person
) -> None:
    asked = {"session": "se_fi", "thread": "tr_star"}
    assert (await ann.post("/v1/follows", asked))[1]["code"] == "store.ambiguous_id"
    status, said = await bob.post("/v1/follows", asked)
    assert (status, said["session"]) == (200, "se_fig")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/inbox",
        "/v1/work",
        "/v1/sessions",
        "/v1/sessions/se_router/entries",
        "/v1/requests?all=1",
        "/v1/waits?all=1",
        "/v1/outbox",
        "/v1/events/list?after=0",
        "/v1/follows",
        "/v1/stalled",
        "/v1/devices",
        "/v1/costs",
    ],
)
async def test_no_list_tells_of_what_is_somebodys_own(ann: Person, bob: Person, path: str) -> None:
    status, listed = await bob.get(path)
    assert status == 200
    assert [each for each in HIDDEN if each in str(listed)] == []


async def test_a_problem_names_nothing_that_is_somebodys_own(client: Client, bob: Person) -> None:
    client.behind.raises = NotNowError("ob_x", "it waits for wk_fix")
    status, said = await bob.post("/v1/sources/gh/retry")
    assert (status, said["code"]) == (404, "store.unknown_id")
    assert "wk_fix" not in str(said)
    client.behind.raises = NotNowError("ob_x", "it waits for wk_other")
    assert (await bob.post("/v1/sources/gh/retry"))[0] == 409


async def test_what_is_everybodys_stays_in_the_lists(ann: Person, bob: Person) -> None:
    _, inbox = await bob.get("/v1/inbox")
    assert "tr_star" in str(inbox)
    _, own = await ann.get("/v1/inbox")
    assert "tr_red" in str(own)


async def test_the_stream_passes_over_what_is_somebodys_own(
    client: Client, ann: Person, bob: Person
) -> None:
    _, last = await bob.get("/v1/events/last")
    rows = [Event(at_ms=1, stop=f"s.{item}", work_id=item) for item in ("wk_fix", "wk_other")]
    async with bob.session.get(client.url + f"/v1/events?after={last['seq']}") as stream:
        await client.behind.store.write(lambda c: put(c, *rows))
        client.behind.bell.ring()
        async with asyncio.timeout(5):
            said = await stream.content.readuntil(b"s.wk_other")
    assert b"wk_fix" not in said


@pytest.mark.parametrize("query", ["", "text=r&"])
async def test_how_long_a_list_may_be_tells_nothing_of_what_is_hidden(
    ann: Person, bob: Person, query: str
) -> None:
    _, hers = await ann.get(f"/v1/inbox?{query}limit=50")
    _, whole = await bob.get(f"/v1/inbox?{query}limit=50")
    assert 0 < len(whole) < len(hers)
    for limit in range(1, len(hers) + 1):
        _, cut = await bob.get(f"/v1/inbox?{query}limit={limit}")
        assert cut == whole[:limit]


async def test_only_its_owner_makes_an_item_private_or_shares_it(
    client: Client, ann: Person
) -> None:
    await give(client, "bob", "admin")
    assert (await ann.post("/v1/work/wk_fix/share"))[0] == 200
    bob = await browser(client, "bob")
    assert (await bob.get("/v1/work/wk_fix"))[0] == 200
    status, _ = await bob.post("/v1/work/wk_fix/private")
    assert status == 409
    await bob.session.close()


async def test_what_is_below_a_private_item_is_private_too(client: Client, ann: Person) -> None:
    other = work("wk_other", WorkState.BLOCKED, trigger_id="tr_star")
    await client.behind.store.write(lambda c: put(c, session("se_other", work="wk_other"), other))
    units, seen = client.behind.units, sa.select(WORK.c.private_to).where(WORK.c.id == "wk_other")

    async def private_to() -> object:
        return await units.read(lambda c: c.scalar(seen))

    assert await private_to() == ""
    await units.write(lambda u: privacy.inherit(u, "wk_other", "wk_fix"))
    assert await private_to() == "ann"
    await units.write(lambda u: relations.relate(u, "wk_other", CHILD_OF, "wk_fix"))
    await ann.post("/v1/work/wk_fix/share")
    assert await private_to() == ""
    await ann.post("/v1/work/wk_fix/private")
    assert await private_to() == "ann"


# ------------------------------------------------------------------ the audit trail
async def test_what_was_done_and_what_was_refused_is_written_down(
    client: Client, ann: Person
) -> None:
    await ann.post("/v1/work/wk_fix/share")
    await ann.post("/v1/accounts/ann/give", {"role": "admin", "exec": "yes"})
    await ann.post("/v1/sessions/se_fix/stop", None, **{"X-CSRF-Token": "x"})
    _, rows = await client.get("/v1/audit?who=ann")
    told = [(row["action"], row["object"], row["outcome"], row["via"]) for row in rows]
    assert told == [
        ("sessions.stop", "se_fix", "csrf.token", "session"),
        ("accounts.give", "ann", "role.too_low", "session"),
        ("work.share", "wk_fix", "done", "session"),
        ("work.private", "wk_fix", "done", "session"),
        ("sign-in", "", "done", "link"),
    ]
    assert {row["origin"] for row in rows} == {"127.0.0.1"}


async def test_a_deed_and_its_row_are_one_transaction(client: Client, ann: Person) -> None:
    """The event of the deed and the row of the trail are stored together, or neither is."""
    count = sa.select(sa.func.count()).select_from(AUDIT)
    before = await client.behind.store.read(lambda c: c.scalar(count))
    events = sa.select(sa.func.count()).select_from(EVENT).where(EVENT.c.stop == "work.shared")

    def full(c: sa.Connection) -> None:
        c.exec_driver_sql(
            "CREATE TRIGGER no_trail BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END"
        )

    await client.behind.store.write(full)
    status, _ = await ann.post("/v1/work/wk_fix/share")
    assert status >= 500
    assert await client.behind.store.read(lambda c: c.scalar(events)) == 0
    assert await client.behind.store.read(lambda c: c.scalar(count)) == before


async def test_a_link_that_nobody_gave_is_written_down(client: Client) -> None:
    async with client.session.get(client.url + "/sign-in/link/guess") as response:
        assert response.status == 410
    _, rows = await client.get("/v1/audit?action=sign-in")
    assert [(row["outcome"], row["who"]) for row in rows] == [("sign_in.link", "")]


async def test_looking_is_not_written_down_but_taking_everything_is(client: Client) -> None:
    await client.get("/v1/inbox")
    async with client.session.get(
        client.url + "/v1/backup", headers={"Authorization": "Bearer t-o-k-e-n"}
    ) as response:
        await response.read()
    _, rows = await client.get("/v1/audit")
    assert [row["action"] for row in rows] == ["backup.read"]


async def test_a_failed_deed_is_written_down_with_its_reason(client: Client) -> None:
    client.behind.raises = KeyError("broke")
    await client.post("/v1/sessions/se_fix/stop")
    _, rows = await client.get("/v1/audit")
    assert [(row["action"], row["outcome"]) for row in rows] == [("sessions.stop", "error")]


async def test_the_trail_is_for_admins(client: Client, ann: Person) -> None:
    assert (await ann.get("/v1/audit"))[0] == 403


async def test_the_trail_is_read_by_who_what_and_when(client: Client, ann: Person) -> None:
    client.behind.clock.passed_s = 100
    await ann.post("/v1/work/wk_fix/share")
    since = 1767225600000 + 50_000
    _, rows = await client.get(f"/v1/audit?since={since}&who=ann&action=work")
    assert [row["action"] for row in rows] == ["work.share"]
    _, rows = await client.get(f"/v1/audit?before={rows[0]['seq']}&limit=1")
    assert [row["action"] for row in rows] == ["work.private"]
