"""Slack without a server: texts, events, the cursor, settings."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from upright.api import SecretRef, TriggerRejectedError
from upright.kit.payload import Json
from upright_slack.ear import Place
from upright_slack.events import What, read
from upright_slack.settings import SlackSettings
from upright_slack.text import moment, names, readable, stamp

ME = "U0HELPER01"
SAID: dict[str, Any] = {
    "type": "message",
    "channel": "C1",
    "user": "U1",
    "text": "hello",
    "ts": "1780308000.000100",
}


def test_marks_are_read_as_people_see_them() -> None:
    text = (
        "<@U1> in <#C1|dev>: <https://example.org|the page> &amp; <https://example.org/x> <!here>"
    )
    assert readable(text) == (
        "@U1 in #dev: the page (https://example.org) & https://example.org/x @here"
    )
    assert readable("<mailto:a@example.org|a@example.org> &lt;@U1&gt;") == "a@example.org <@U1>"


def test_only_the_whole_id_names_us() -> None:
    assert names(f"hi <@{ME}>", ME)
    assert names(f"<@{ME}|helper> hi", ME)
    assert not names(f"<@{ME}2> {ME}", ME)
    assert not names("&lt;@U0HELPER01&gt;", ME)


def test_a_stamp_is_a_time_in_whole_seconds() -> None:
    at = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)
    assert moment("1780308000.000100") == at
    assert stamp(at) == "1780308000.000000"
    assert [moment(one) for one in ("", "x.1", "9" * 20)] == [None] * 3


@pytest.mark.case("GN/290")
def test_a_preview_is_no_edit_and_a_tombstone_is_a_deletion() -> None:
    changed = {"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "2.0"}
    preview = {**SAID, "attachments": [{"id": 1}]}
    assert read(Json({**changed, "message": preview, "previous_message": SAID})) is None
    edited = {**SAID, "text": "bye", "edited": {"user": "U2", "ts": "1780308009.000000"}}
    edit = read(Json({**changed, "message": edited, "previous_message": SAID}))
    assert edit is not None
    assert (edit.what, edit.user, edit.text) == (What.EDITED, "U2", "bye")
    assert edit.key == "edit:C1:1780308000.000100:1780308009.000000"
    gone = {**SAID, "subtype": "tombstone"}
    deleted = read(Json({**changed, "message": gone, "previous_message": SAID}))
    assert deleted is not None
    assert deleted.what is What.DELETED


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    ("more", "plain"),
    [
        pytest.param({}, True, id="typed"),
        pytest.param({"subtype": "thread_broadcast"}, True, id="typed and shown in the channel"),
        pytest.param({"subtype": "me_message"}, False, id="about themselves"),
        pytest.param({"subtype": "bot_message"}, False, id="a bot"),
        pytest.param({"user": ""}, False, id="nobody"),
        pytest.param({"bot_id": "B1"}, False, id="by a bot under their name"),
        pytest.param({"app_id": "A1"}, False, id="by an app under their name"),
        pytest.param({"files": [{"url_private": "https://f.example"}]}, False, id="a file"),
        pytest.param({"attachments": [{"is_share": True}]}, False, id="forwarded"),
        pytest.param({"edited": {"user": "U1", "ts": "1"}}, False, id="edited since"),
    ],
)
def test_only_what_a_person_has_just_typed_is_plain(more: dict[str, Any], *, plain: bool) -> None:
    event = read(Json({**SAID, **more}))
    assert event is not None
    assert event.plain is plain


@pytest.mark.parametrize(
    "subtype", ["channel_join", "channel_topic", "message_replied", "pinned_item"]
)
def test_noise_tells_nothing(subtype: str) -> None:
    assert read(Json({**SAID, "subtype": subtype})) is None


def test_a_message_without_its_channel_is_refused() -> None:
    with pytest.raises(TriggerRejectedError, match="channel"):
        read(Json({"type": "message", "ts": "1.0"}))


def test_the_place_never_moves_back() -> None:
    place = Place("1.0", {"C1": "5.0"})
    assert place.since("C1") == "5.0"
    assert place.since("C2") == "1.0"
    moved = place.moved("C1", "3.0").moved("C2", "7.0")
    assert (moved.at, moved.since("C1"), moved.since("C2")) == ("7.0", "5.0", "7.0")
    assert Place.read(str(moved)) == moved


@pytest.mark.parametrize("cursor", ["", "{", "[]", "7", "{}", '{"at":"1","channels":[]}'])
def test_a_cursor_that_is_none_of_ours_is_lost(cursor: str) -> None:
    assert Place.read(cursor) is None


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"api_url": "slack.example.org"}, "api_url"),
        ({"api_url": "http://slack.example.org/api"}, "https"),
        ({"app_token": None}, "signing_secret"),
        ({"signing_secret": SecretRef("env:S")}, "signing_secret"),
        ({"silence_s": 0.0}, "silence_s"),
        ({"timeout_s": 0.0}, "timeout_s"),
        ({"threads_back_s": -1.0}, "threads_back_s"),
    ],
)
def test_a_setting_that_cannot_work_is_named(changed: dict[str, Any], named: str) -> None:
    plain: dict[str, Any] = {"bot_token": SecretRef("env:B"), "app_token": SecretRef("env:A")}
    with pytest.raises(ValueError, match=named):
        SlackSettings(**plain | changed)
