from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from fixtures.databases import connected
from fixtures.store_rows import story
from upright.store import tables
from upright.store.address import Address
from upright.store.errors import UnknownIdError
from upright.store.views_why import why


@pytest.fixture
def c(address: Address) -> Iterator[sa.Connection]:
    with connected(address) as connection:
        story(connection)
        yield connection


def test_the_path_of_a_trigger_holds_its_own_stops_in_their_order(c: sa.Connection) -> None:
    path = why(c, "tr_red")["events"]
    assert [(event["stop"], event["at_ms"]) for event in path] == [
        ("intake.accepted", 100),
        ("turn.began", 120),
        ("turn.began", 200),
        ("outbox.made", 270),
        ("job.ended", 275),
        ("outbox.sent", 280),
    ]


def test_the_path_names_who_got_the_trigger_and_the_turns_that_took_it(c: sa.Connection) -> None:
    path = why(c, "tr_red")
    assert [each["session_id"] for each in path["deliveries"]] == ["se_router", "se_fix"]
    assert [(turn["id"], turn["ending"]) for turn in path["turns"]] == [
        ("tu_router", "rest"),
        ("tu_fix", "rest"),
    ]


def test_the_path_holds_the_jobs_and_effects_of_those_turns_alone(c: sa.Connection) -> None:
    path = why(c, "tr_red")
    assert [job["id"] for job in path["jobs"]] == ["jb_test"]
    assert [(item["id"], item["receipt_url"]) for item in path["outbox"]] == [
        ("ob_fixed", "https://example.org/99")
    ]


def test_an_effect_that_names_the_trigger_belongs_to_its_path(c: sa.Connection) -> None:
    answers = tables.OUTBOX.update().where(tables.OUTBOX.c.id == "ob_other")
    c.execute(answers.values(trigger_id="tr_star"))
    path = why(c, "tr_star")
    assert [item["id"] for item in path["outbox"]] == ["ob_other"]
    assert [event["stop"] for event in path["events"]] == ["intake.accepted", "outbox.sent"]


def test_costs_are_summed_for_each_turn_and_in_all(c: sa.Connection) -> None:
    path = why(c, "tr_red")
    assert [turn["costs"]["usd_micros"] for turn in path["turns"]] == [5, 7]
    assert [turn["costs"]["unpriced"] for turn in path["turns"]] == [0, 1]
    assert (path["costs"]["usd_micros"], path["costs"]["calls"]) == (12, 3)


def test_a_turn_that_cost_nothing_says_so(c: sa.Connection) -> None:
    c.execute(tables.LEDGER.delete())
    assert [turn["costs"]["calls"] for turn in why(c, "tr_red")["turns"]] == [0, 0]


def test_a_trigger_that_went_nowhere_has_a_path_of_one_stop(c: sa.Connection) -> None:
    path = why(c, "tr_star")
    assert [event["stop"] for event in path["events"]] == ["intake.accepted"]
    assert (path["turns"], path["jobs"], path["outbox"]) == ([], [], [])
    assert (path["trigger"]["disposition"], path["costs"]["calls"]) == ("ignored", 0)


def test_a_path_can_be_written_as_json(c: sa.Connection) -> None:
    path = why(c, "tr_red")
    assert json.loads(json.dumps(path)) == path


def test_the_path_of_nothing_is_a_typed_error(c: sa.Connection) -> None:
    with pytest.raises(UnknownIdError):
        why(c, "tr_nothing")
