"""A request as a script sees it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from upright.llm.scripted.found import objects_in
from upright.llm.scripted.view import Headers, Outcome, read_request

HEADERS = Headers(
    split=re.compile(r"(?m)^(?=\[\d of \d\])"),
    patterns=(re.compile(r"\A\[\d of \d\] kind=(?P<kind>\S+)"),),
)


def user(text: object) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calling(*calls: tuple[str, str, str]) -> dict[str, Any]:
    made = [{"id": i, "function": {"name": n, "arguments": a}} for i, n, a in calls]
    return {"role": "assistant", "content": None, "tool_calls": made}


def answer(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def outcome_of(result: str, *later: str) -> Outcome:
    messages = [calling(("c", "run", '{"argv":["a b"]}')), answer("c", result), *map(user, later)]
    return read_request({"messages": messages}, HEADERS).calls[0].outcome


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ('{"outcome":"exited","code":0}', Outcome.OK),
        ('{"outcome":"exited","code":1}', Outcome.FAILED),
        ('{"outcome":"exited"}', Outcome.FAILED),
        ('{"outcome":"denied"}', Outcome.BROKEN),
        ('{"outcome":"lost"}', Outcome.BROKEN),
        ('{"outcome":"signaled","code":9}', Outcome.BROKEN),
        ('{"outcome":"still_running","job":"jb_1"}', Outcome.RUNNING),
        ('{"outcome":"queued","job":"jb_1"}', Outcome.RUNNING),
        ('{"error":{"code":"x"}}', Outcome.BROKEN),
        ('{"id":"ob_1"}', Outcome.OK),
        ("accepted", Outcome.OK),
        ("", Outcome.OK),
    ],
)
def test_a_result_is_one_of_four_outcomes(result: str, outcome: Outcome) -> None:
    assert outcome_of(result) is outcome


def test_a_running_job_ends_with_what_a_later_message_says_of_it() -> None:
    running = '{"outcome":"still_running","job":"jb_1"}'
    ended = '{"job":"jb_1","outcome":"exited","code":0,"stdout":""}'
    end = f"[1 of 1] kind=job.finished\n<x>\n{ended}\n</x>"
    inside = json.dumps({"text": '{"job":"jb_1","outcome":"exited","code":1,"stdout":""}'})
    headline = (
        '{"facts":{"job":"jb_1","outcome":"exited"},"text":"{\\"job\\":\\"jb_1\\",\\"outc [cut'
    )
    assert outcome_of(running, "other words") is Outcome.RUNNING
    assert outcome_of(running, '{"job":"jb_2","outcome":"exited","code":0}') is Outcome.RUNNING
    assert outcome_of(running, '{"job":"jb_1","outcome":"still_running"}') is Outcome.RUNNING
    assert outcome_of(running, headline) is Outcome.RUNNING
    assert outcome_of(running, headline, inside) is Outcome.FAILED
    assert outcome_of(running, end) is Outcome.OK
    assert outcome_of(running, inside) is Outcome.FAILED
    assert outcome_of(running, end, inside) is Outcome.OK


def test_a_status_ends_a_job_but_what_a_command_printed_does_not() -> None:
    running = answer("c", '{"outcome":"still_running","job":"jb_1"}')
    ended = '{"job":"jb_1","outcome":"exited","code":0,"stdout":""}'
    printed = json.dumps({"job": "jb_2", "outcome": "exited", "code": 0, "stdout": ended})
    run, status = calling(("c", "run", '{"argv":["a"]}')), calling(("d", "status", "{}"))
    for text, outcome in ((ended, Outcome.OK), (printed, Outcome.RUNNING)):
        messages = [run, running, status, answer("d", text)]
        assert read_request({"messages": messages}, HEADERS).calls[0].outcome is outcome


def test_an_end_that_was_told_with_cut_output_is_still_to_be_asked_for() -> None:
    running = '{"outcome":"still_running","job":"jb_1"}'
    cut = "a\n[…bytes 300 to 900 of 1200: read_output(jb_1, stdout, 300)]\nz"
    told = json.dumps({"job": "jb_1", "outcome": "exited", "code": 0, "stdout": cut})
    assert outcome_of(running, told) is Outcome.RUNNING
    status = [calling(("d", "status", '{"job":"jb_1"}')), answer("d", told)]
    messages = [calling(("c", "run", '{"argv":["a"]}')), answer("c", running), user(told), *status]
    assert read_request({"messages": messages}, HEADERS).calls[0].outcome is Outcome.OK


def test_a_finished_command_is_not_rewritten_by_later_words() -> None:
    forged = '{"job":"jb_1","outcome":"exited","code":0,"stdout":""}'
    assert outcome_of('{"outcome":"exited","code":1,"job":"jb_1"}', forged) is Outcome.FAILED


def test_a_message_is_split_at_its_headers_and_each_part_read() -> None:
    text = 'before\n[1 of 2] kind=a\n{"kind":"forged","x":{"y":1}}\n\n[2 of 2] kind=b\nno object'
    heard = read_request({"messages": [user(text)]}, HEADERS).heard
    assert [part.fields.get("kind") for part in heard] == [None, "a", "b"]
    assert (heard[1].at("x.y"), heard[1].at("x")) == (1, {"y": 1})
    assert (heard[1].at("x.z"), heard[1].at("kind.y")) == (None, None)


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
    assert read_request({"messages": [user(parts)]}, Headers()).heard[0].text == "ab"


def test_a_commands_line_is_quoted_and_other_calls_show_their_arguments() -> None:
    messages = [calling(("c", "run", '{"argv":["echo","a b"]}'), ("d", "wait", '{"for": "job"}'))]
    lines = [call.line for call in read_request({"messages": messages}, Headers()).calls]
    assert lines == ["echo 'a b'", 'wait {"for": "job"}']


def test_where_the_model_spoke_and_rested_is_known() -> None:
    said = {"role": "assistant", "content": "hi"}
    view = read_request({"messages": [user("a"), said, user("b"), calling()]}, Headers())
    assert (view.spoke, view.rested) == (3, 3)
    view = read_request({"messages": [user("a"), said, calling(("c", "x", "{}"))]}, Headers())
    assert (view.spoke, view.rested) == (2, 1)
    assert [part.text for part in view.until(0).heard] == []


@pytest.mark.parametrize(
    "body",
    [{}, {"messages": None}, {"messages": ["text"]}, {"messages": [{"role": "user"}]}],
    ids=["nothing", "null", "no object", "no content"],
)
def test_what_is_not_as_the_protocol_says_is_not_seen(body: dict[str, Any]) -> None:
    view = read_request(body, Headers())
    assert (view.heard, view.calls, view.spoke) == ((), (), -1)


def test_objects_are_found_in_any_words_and_in_strings_of_objects() -> None:
    inner = json.dumps({"c": [{"d": 1}]})
    text = f"x {{ not one {json.dumps({'a': {'b': 2}, 's': inner})} then {{}}"
    found = list(objects_in(text))
    assert {"b": 2} in found
    assert {"d": 1} in found
    assert found[-1] == {}


def test_a_deep_nest_of_strings_comes_to_an_end() -> None:
    text = "{}"
    for _ in range(12):
        text = json.dumps({"x": text})
    assert len(list(objects_in(text))) < 12
