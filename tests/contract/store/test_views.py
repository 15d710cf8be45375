from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from fixtures.databases import connected
from fixtures.store_rows import put, session, story
from upright.core.trigger import Disposition
from upright.core.work import WorkState
from upright.store import costs, views, views_devices, views_events, views_requests, views_work
from upright.store.address import Address
from upright.store.errors import UnknownIdError
from upright.store.tables import DELIVERY, PAYLOAD, SESSION
from upright.store.views_inbox import Wanted, inbox, sources


@pytest.fixture
def c(address: Address) -> Iterator[sa.Connection]:
    with connected(address) as connection:
        story(connection)
        yield connection


def ids(rows: list[dict[str, object]]) -> list[object]:
    return [row["id"] for row in rows]


# ------------------------------------------------------------------ triggers
def test_the_inbox_lists_the_newest_first_and_pages_by_sequence(c: sa.Connection) -> None:
    first = inbox(c, Wanted(limit=2))
    rest = inbox(c, Wanted(limit=2, before_seq=first[-1]["seq"]))
    assert (ids(first), ids(rest)) == (["tr_green", "tr_star"], ["tr_red"])


def test_the_inbox_can_be_cut_to_one_disposition(c: sa.Connection) -> None:
    assert ids(inbox(c, Wanted(limit=9, disposition=Disposition.IGNORED))) == ["tr_star"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("RED", ["tr_red"]),  # a title, whatever its case
        ("because", ["tr_green", "tr_star", "tr_red"]),  # the reason
        ("request 7", ["tr_green", "tr_star", "tr_red"]),  # the thread's title
        ("it broke", ["tr_green", "tr_star", "tr_red"]),  # what was said
        ("ann", ["tr_green", "tr_star", "tr_red"]),  # by whom
        ("content", []),  # how it is kept
        ("it bro_e", []),  # what SQL takes for a pattern is only a text
        ("%", []),
    ],
)
def test_the_inbox_is_searched_for_a_text(c: sa.Connection, text: str, found: list[str]) -> None:
    assert ids(inbox(c, Wanted(limit=9, text=text))) == found


def test_the_inbox_can_be_cut_to_one_source(c: sa.Connection) -> None:
    assert sources(c) == ["github"]
    assert len(inbox(c, Wanted(limit=9, source="github"))) == 3
    assert inbox(c, Wanted(limit=9, source="mail")) == []


def test_the_inbox_says_what_the_turns_cost_that_took_a_trigger(c: sa.Connection) -> None:
    green, _, red = inbox(c, Wanted(limit=9))
    assert (red["costs"]["usd_micros"], red["costs"]["calls"]) == (12, 3)
    assert (green["costs"]["usd_micros"], green["costs"]["calls"]) == (None, 0)


def test_the_inbox_says_what_became_of_a_trigger(c: sa.Connection) -> None:
    red = inbox(c, Wanted(limit=9))[-1]
    shown = ("title", "thread_title", "disposition", "reason", "trust", "deliveries", "work_id")
    assert [red[key] for key in shown] == [
        "Red",
        "Pull request 7",
        "started",
        "because",
        "member",
        2,
        "wk_fix",
    ]


def test_a_trigger_is_shown_whole(c: sa.Connection) -> None:
    red = views.trigger(c, "tr_red")
    assert red["body"]["content"]["text"] == "It broke."
    assert (red["verdict"], red["rule"], red["work_id"]) == ("explicit", "a rule", "wk_fix")
    assert red["thread"]["keys"] == ["pr:7", "sha:abc"]
    assert red["thread"]["sessions"] == ["se_fix"]
    assert (red["payload"]["size"], red["payload"]["raw"]) == (12, "kept")
    assert [(d["session_id"], d["session_kind"], d["turn_id"]) for d in red["deliveries"]] == [
        ("se_router", "router", "tu_router"),
        ("se_fix", "worker", "tu_fix"),
    ]


def test_a_delivery_that_nobody_took_yet_has_no_turn(c: sa.Connection) -> None:
    (waiting,) = views.trigger(c, "tr_green")["deliveries"]
    assert (waiting["taken_n"], waiting["turn_id"]) == (None, None)


def test_a_trigger_outlives_its_payload(c: sa.Connection) -> None:
    before = views.payload(c, "pl_red")
    c.execute(PAYLOAD.update().values(body=b"", pruned_at_ms=0))
    assert (before.media_type, before.body) == ("application/json", b'{"number":7}')
    assert views.trigger(c, "tr_red")["payload"]["raw"] == "pruned on 1970-01-01"
    assert views.payload(c, "pl_red").pruned == "pruned on 1970-01-01"


# ------------------------------------------------------------------ sessions
def test_a_session_shows_what_it_follows_what_waits_and_what_it_cost(c: sa.Connection) -> None:
    worker = views.session(c, "se_fix")
    assert [each["thread_id"] for each in worker["subscriptions"]] == ["th_pr"]
    assert worker["pending"] == [{"trigger_id": "tr_green", "wake": True}]
    assert (worker["entries"], ids(worker["turns"])) == (4, ["tu_fix"])
    assert worker["costs"]["tokens_input"] == 300


@pytest.mark.parametrize(
    ("values", "status"),
    [
        pytest.param({}, "resting", id="nothing-to-do"),
        pytest.param({"ready_at_ms": 1}, "ready", id="in-the-queue"),
        pytest.param({"ready_at_ms": 1, "lease_until_ms": 9}, "running", id="leased"),
        pytest.param({"ended_at_ms": 1}, "ended", id="ended"),
    ],
)
def test_a_session_has_one_status(c: sa.Connection, values: dict[str, int], status: str) -> None:
    if values:
        c.execute(SESSION.update().where(SESSION.c.id == "se_fix").values(**values))
    listed = {row["id"]: row["status"] for row in views.sessions(c, limit=9)}
    assert (views.session(c, "se_fix")["status"], listed["se_fix"]) == (status, status)


def test_ended_sessions_can_be_left_out(c: sa.Connection) -> None:
    c.execute(SESSION.update().where(SESSION.c.id == "se_fix").values(ended_at_ms=1))
    assert ids(views.sessions(c, limit=9, live_only=True)) == ["se_router"]


def test_a_transcript_is_read_on_from_any_entry(c: sa.Connection) -> None:
    read = views.entries(c, "se_fix", after_n=1, limit=9)
    assert [row["n"] for row in read] == [2, 3]
    assert read[0]["message"]["calls"][0]["name"] == "run"
    assert read[1]["message"] == {"role": "tool", "text": "ok", "calls": [], "call_id": "c_run"}


# ------------------------------------------------------------------ work
def test_a_waiting_item_says_what_for_since_when_until_when_and_what_then(
    c: sa.Connection,
) -> None:
    (wait,) = views_work.work_list(c, states=[WorkState.WAITING_EXTERNAL])[0]["waits"]
    shown = ("kind", "ref", "why", "since_ms", "until_ms", "then")
    assert [wait[key] for key in shown] == [
        "external",
        "th_pr",
        "the build runs",
        300,
        900,
        "ask",
    ]


def test_work_is_listed_by_state(c: sa.Connection) -> None:
    assert views_work.work_list(c, states=[WorkState.RUNNABLE]) == []
    assert ids(views_work.work_list(c)) == ["wk_fix"]


def test_an_item_is_shown_whole(c: sa.Connection) -> None:
    item = views_work.work(c, "wk_fix")
    assert (item["criteria"], item["mandate"]["given_by"]) == (["tests pass"], "ann")
    assert [(wait["id"], wait["state"]) for wait in item["waits"]] == [
        ("wt_ci", "open"),
        ("wt_old", "matched"),
    ]
    assert ids(item["jobs"]) == ["jb_other", "jb_test"]
    assert ids(item["outbox"]) == ["ob_fixed", "ob_other"]
    assert ids(item["questions"]) == ["rq_branch", "rq_done"]
    assert (item["session"]["id"], item["costs"]["usd_micros"]) == ("se_fix", 7)


def test_a_jobs_input_is_shown_by_its_size(c: sa.Connection) -> None:
    one = views_work.job(c, "jb_test")
    assert (one["stdin_bytes"], "stdin" in one, one["spec"]["argv"]) == (4, False, ["make", "test"])
    assert views_work.work(c, "wk_fix")["jobs"][1]["stdin_bytes"] == 4


# ------------------------------------------------------------------ the rest
def test_open_requests_are_listed_apart_from_settled_ones(c: sa.Connection) -> None:
    assert ids(views_requests.requests(c)) == ["rq_branch"]
    assert ids(views_requests.requests(c, open_only=False)) == ["rq_branch", "rq_done"]


def test_a_device_is_listed_with_its_workspaces(c: sa.Connection) -> None:
    (device,) = views_devices.devices(c)
    assert device["facts"] == {"os": "linux"}
    assert "public_key" not in device
    assert [(w["path"], w["remotes"]) for w in device["workspaces"]] == [
        ("/src/app", ["git@x:app"])
    ]


def test_a_source_says_when_it_was_last_heard(c: sa.Connection) -> None:
    (source,) = views.sources(c)
    assert (source["name"], source["state"], source["heard_at_ms"]) == ("github", "running", 400)


def test_events_are_read_on_by_sequence(c: sa.Connection) -> None:
    first = views_events.events_since(c, 0, limit=4)
    rest = views_events.events_since(c, first[-1]["seq"], limit=99)
    assert (len(first), len(rest)) == (4, 5)
    assert rest[0]["data"] == {"class": "reply"}


def test_costs_count_what_has_no_price_apart(c: sa.Connection) -> None:
    spent = costs.costs(c)
    assert spent["total"] == {
        "calls": 3,
        "beside": 0,
        "retries": 0,
        "tokens_input": 400,
        "tokens_cached": 160,
        "tokens_output": 40,
        "usd_micros": 12,
        "unpriced": 1,
        "seconds": 2.0,
    }
    assert [(row["kind"], row["calls"]) for row in spent["by_kind"]] == [("job", 0), ("model", 3)]
    assert [row["model"] for row in spent["by_model"]] == ["m"]
    assert [row["work_id"] for row in spent["by_work"]] == ["wk_fix"]


def test_costs_of_a_time_in_which_nothing_was_spent_are_zero(c: sa.Connection) -> None:
    spent = costs.costs(c, since_ms=9999)["total"]
    assert (spent["calls"], spent["usd_micros"], spent["seconds"]) == (0, None, 0.0)


@pytest.mark.parametrize(
    "view", [views.trigger, views.thread, views.session, views_work.work, views_work.job]
)
def test_what_is_not_there_is_a_typed_error(
    c: sa.Connection, view: Callable[[sa.Connection, str], object]
) -> None:
    with pytest.raises(UnknownIdError, match="xx_nothing"):
        view(c, "xx_nothing")


def test_every_view_can_be_written_as_json(c: sa.Connection) -> None:
    shown = [
        inbox(c, Wanted(limit=9)),
        views.trigger(c, "tr_red"),
        views.session(c, "se_fix"),
        views.sessions(c, limit=9),
        views.entries(c, "se_fix", limit=9),
        views_requests.requests(c),
        views_devices.devices(c),
        views.sources(c),
        views_events.events_since(c, 0, limit=9),
        views_work.work_list(c),
        views_work.work(c, "wk_fix"),
        costs.costs(c),
    ]
    assert json.loads(json.dumps(shown)) == shown


def test_a_session_without_deliveries_has_nothing_pending(c: sa.Connection) -> None:
    c.execute(DELIVERY.delete())
    put(c, session("se_new"))
    assert views.session(c, "se_new")["pending"] == []
