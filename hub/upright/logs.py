"""Logs: events with their fields, one JSON object a line, or a line for people.

``log.info("turn.started", extra={"session": …})``: the message is the event's name, every extra
field is kept. A :class:`upright.api.Secret` among them prints as ``Secret(…)``.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

_OWN: Final = frozenset(
    {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}
)
_DIM: Final = "\x1b[2m"
_RED: Final = "\x1b[31m"
_YELLOW: Final = "\x1b[33m"
_RESET: Final = "\x1b[0m"
_COLOURS: Final = ((logging.ERROR, _RED), (logging.WARNING, _YELLOW), (logging.NOTSET, _DIM))


def extra_of(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields that the caller gave."""
    return {name: value for name, value in vars(record).items() if name not in _OWN}


def _at(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


class JsonLines(logging.Formatter):
    """One object a line: ``at``, ``level``, ``logger``, ``event``, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line; what JSON can't say becomes its ``str``."""
        said: dict[str, object] = {
            "at": _at(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **extra_of(record),
        }
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False, default=str)


class Human(logging.Formatter):
    """A short line; a trace below it."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """Write one line: time, level, event, fields."""
        head = f"{_at(record):%H:%M:%S} {record.levelname.lower():<7}"
        if self._colour:
            colour = next(code for level, code in _COLOURS if record.levelno >= level)
            head = f"{colour}{head}{_RESET}"
        fields = " ".join(f"{name}={_short(value)}" for name, value in extra_of(record).items())
        line = f"{head} {record.getMessage()} {fields}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _short(value: object) -> str:
    said = str(value)
    return json.dumps(said, ensure_ascii=False) if not said or " " in said or "\n" in said else said


def set_up(*, level: str, style: str, stream: TextIO | None = None) -> None:
    """Send all logs of this process to *stream*, standard error by default. For ``serve`` only.

    *style* is ``json``, ``human``, or ``auto``: for people on a terminal, JSON elsewhere.
    """
    target = stream or sys.stderr
    on_terminal = target.isatty()
    as_json = style == "json" or (style == "auto" and not on_terminal)
    handler = logging.StreamHandler(target)
    handler.setFormatter(JsonLines() if as_json else Human(colour=on_terminal))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for chatty in ("aiohttp.access", "httpx", "httpcore", "openai", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
