"""Logs: the event's name, all its fields, and never a secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from fixtures.own_logs import logs_restored
from upright.api import Secret
from upright.logs import Human, JsonLines, set_up


@pytest.fixture(autouse=True)
def untouched_root() -> Iterator[None]:
    with logs_restored():
        yield


def test_json_lines_keep_every_field() -> None:
    stream = io.StringIO()
    set_up(level="info", style="json", stream=stream)
    logging.getLogger("upright.x").info("turn.started", extra={"session": "se_1", "n": 2})
    said = json.loads(stream.getvalue())
    assert said.pop("at").endswith("+00:00")
    assert said == {
        "level": "info",
        "logger": "upright.x",
        "event": "turn.started",
        "session": "se_1",
        "n": 2,
    }


def test_what_is_below_the_level_is_left_out() -> None:
    stream = io.StringIO()
    set_up(level="warning", style="auto", stream=stream)
    logging.getLogger("upright.x").info("turn.started")
    assert not stream.getvalue()


def test_a_stream_that_is_no_terminal_gets_json() -> None:
    stream = io.StringIO()
    set_up(level="info", style="auto", stream=stream)
    logging.getLogger("upright.x").error("turn.broke")
    assert json.loads(stream.getvalue())["event"] == "turn.broke"


def record_with_error() -> logging.LogRecord:
    error = ValueError("no")
    record = logging.makeLogRecord(
        {"msg": "it.broke", "levelno": 40, "levelname": "ERROR", "token": Secret("hush")}
    )
    record.exc_info = (ValueError, error, None)
    return record


@pytest.mark.parametrize("formatter", [JsonLines(), Human(colour=True), Human(colour=False)])
def test_secrets_never_print_and_traces_do(formatter: logging.Formatter) -> None:
    line = formatter.format(record_with_error())
    assert "hush" not in line
    assert "Secret(…)" in line
    assert "ValueError: no" in line


def test_people_get_a_short_line() -> None:
    record = logging.getLogger("x").makeRecord(
        "x", logging.INFO, "f", 1, "hub.listens", (), None, extra={"url": "http://h", "why": "a b"}
    )
    line = Human(colour=False).format(record)
    assert line.endswith('info    hub.listens url=http://h why="a b"')
