"""Matrix without a server: events, refusals, settings, and who a message names."""

from __future__ import annotations

from typing import Any

import pytest

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorNotReadyError,
    Secret,
    SecretRef,
    TriggerRejectedError,
)
from upright.kit.calls import Answer, JsonCalls
from upright_matrix.client import MatrixClient, healthy, path, pause_s
from upright_matrix.events import What, names, read, without_fallback
from upright_matrix.rooms import Room
from upright_matrix.settings import MatrixSettings
from upright_matrix.timeline import Gaps, Heard, read_sync

ME = "@helper:example.org"


def event(content: dict[str, Any], kind: str = "m.room.message", **more: object) -> dict[str, Any]:
    plain = {"event_id": "$1", "sender": "@ann:example.org", "origin_server_ts": 1_780_308_000_000}
    return {**plain, "type": kind, "content": content, **more}


def text(body: str, **more: object) -> dict[str, Any]:
    return event({"msgtype": "m.text", "body": body, **more})


def answer(status: int, body: object, **headers: str) -> Answer:
    return Answer(status=status, headers=headers, body=body)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("helper: look", True),
        ("Helper, look", True),
        ("@helper look", True),
        ("helper", True),
        ("helper look", False),
        ("the helper", False),
        ("helperina: look", False),
        (f"ask {ME}", True),
    ],
)
def test_a_name_at_the_start_speaks_to_us(body: str, *, named: bool) -> None:
    assert names(read(text(body)), ME, "Helper") is named


def test_a_pill_speaks_to_us_however_it_is_written() -> None:
    for link in (ME, ME.replace("@", "%40").replace(":", "%3A")):
        html = f'<a class="x" href="https://matrix.to/#/{link}?via=example.org">H</a>'
        assert names(read(text("H", formatted_body=html)), ME, "")


def test_a_fallback_is_no_word_of_the_sender() -> None:
    assert without_fallback("> <@a:x> one\n> two\n\nthree\n> four") == "three\n> four"
    assert without_fallback("> a quote of mine\n\nthree") == "> a quote of mine\n\nthree"


def test_an_edit_says_the_new_text() -> None:
    relates = {"rel_type": "m.replace", "event_id": "$0"}
    new = {"msgtype": "m.text", "body": "new"}
    edit = read(text("* new", **{"m.new_content": new, "m.relates_to": relates}))
    assert (edit.what, edit.text, edit.target) == (What.EDITED, "new", "$0")


def test_what_is_redacted_or_says_nothing_is_noise() -> None:
    assert read(event({})).what is What.NOISE
    assert read(event({"membership": "join"}, "m.room.member", state_key=ME)).what is What.NOISE
    assert read(event({"body": "x", "msgtype": "m.text"}, state_key="")).what is What.NOISE


def test_what_every_event_has_is_wanted() -> None:
    broken_ones: tuple[object, ...] = (None, [], {}, {**text("x"), "origin_server_ts": 10**30})
    for broken in broken_ones:
        with pytest.raises(TriggerRejectedError):
            read(broken)


@pytest.mark.feature("matrix.rate")
def test_a_limit_names_its_time() -> None:
    limited = {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 2_500}
    assert pause_s(answer(429, limited)) == 2.5
    assert pause_s(answer(429, {}, **{"retry-after": "7"})) == 7.0
    assert pause_s(answer(429, None)) == 5.0
    assert pause_s(answer(403, {})) is None
    with pytest.raises(ConnectorNotReadyError) as error:
        healthy(answer(429, limited))
    assert error.value.retry_after_s == 2.5


def test_a_refusal_is_what_it_is() -> None:
    with pytest.raises(ConnectorAuthFailedError, match="M_UNKNOWN_TOKEN"):
        healthy(answer(401, {"errcode": "M_UNKNOWN_TOKEN", "error": "No"}))
    with pytest.raises(ConnectorNotReadyError):
        healthy(answer(502, None))
    assert healthy(answer(404, {})).status == 404


def test_paths_are_quoted() -> None:
    assert path("rooms", "!a/b:x", "state") == "/_matrix/client/v3/rooms/%21a%2Fb%3Ax/state"


def test_a_room_is_known_by_its_state() -> None:
    room = Room(id="!r:x")
    room.learn(
        [
            event({"name": "dev"}, "m.room.name", state_key=""),
            event({"membership": "join", "displayname": "Ann"}, "m.room.member", state_key="@a:x"),
            event({"membership": "join"}, "m.room.member", state_key="@b:x"),
            event({"membership": "leave"}, "m.room.member", state_key="@b:x"),
        ]
    )
    assert (room.name, room.shown("@a:x"), room.shown("@b:x")) == ("dev", "Ann", "@b:x")
    assert set(room.members) == {"@a:x"}


async def test_what_was_said_before_we_were_there_is_left_out() -> None:
    invite = event({"membership": "invite"}, "m.room.member", state_key=ME)
    join = event({"membership": "join"}, "m.room.member", state_key=ME)
    join["unsigned"] = {"prev_content": {"membership": "invite"}}
    long_ago = {**text("long ago"), "origin_server_ts": 1}
    said = (text("before"), invite, long_ago, text("welcome"), join, text("hello"))
    calls = JsonCalls("http://127.0.0.1:1", Secret("none"), timeout_s=1)
    gaps = Gaps(MatrixClient(calls), ME, 10)
    events, whole = await gaps.whole("!r:x", Heard(timeline=said), "s1")
    await calls.close()
    bodies = [one["content"].get("body") for one in events]
    assert whole
    assert bodies == [None, "welcome", None, "hello"]


def test_a_sync_without_rooms_is_read() -> None:
    assert read_sync({"next_batch": "s1"}).next_batch == "s1"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"homeserver": "matrix.example.org"}, "homeserver"),
        ({"homeserver": "http://matrix.example.org"}, "https"),
        ({"user_id": "helper"}, "user_id"),
        ({"poll_s": 0.0}, "poll_s"),
        ({"timeout_s": 1000.0}, "timeout_s"),
        ({"max_gap": 0}, "max_gap"),
    ],
)
def test_a_setting_that_cannot_work_is_named(changed: dict[str, Any], named: str) -> None:
    plain: dict[str, Any] = {"homeserver": "https://matrix.example.org", "user_id": ME}
    with pytest.raises(ValueError, match=named):
        MatrixSettings(token=SecretRef("env:T"), **plain | changed)
