"""Logs: events with their facts, a line each, on stderr."""

from __future__ import annotations

import logging
import sys
from typing import Final

_OURS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Lines(logging.Formatter):
    """``time level event key=value …``; values are quoted so that each event is one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback follows it, when there is one."""
        facts = [f"{k}={v!r}" for k, v in vars(record).items() if k not in _OURS]
        head = [self.formatTime(record), record.levelname.lower(), record.getMessage()]
        line = " ".join([*head, *facts])
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def to_stderr(*, is_verbose: bool) -> None:
    """Send what the daemon tells to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.DEBUG if is_verbose else logging.INFO, handlers=[handler])
    logging.getLogger("websockets").setLevel(logging.WARNING)
