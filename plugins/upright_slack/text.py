"""Texts: Slack's mark-up as people read it, and whom it names.

Source: docs.slack.dev, "Formatting message text", on retrieving messages.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_MARK: Final = re.compile(r"<(?P<what>[@#!])?(?P<target>[^<>|]{1,3000})(?:\|(?P<label>[^<>]*))?>")


def readable(text: str) -> str:
    """Return a text without mark-up; where Slack gives a name, that stands instead of the id."""
    whole = _MARK.sub(_read, text)
    return whole.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _read(hit: re.Match[str]) -> str:
    target, label = hit["target"], hit["label"] or ""
    match hit["what"]:
        case "@" | "#" as mark:
            return f"{mark}{label or target}"
        case "!":
            return label or f"@{target.partition('^')[0]}"
        case _:
            bare = target.removeprefix("mailto:")
            return bare if label in {"", bare, target} else f"{label} ({target})"


def names(text: str, user: str) -> bool:
    """Tell whether a text names a user."""
    return bool(user) and re.search(rf"<@{re.escape(user)}(?:\|[^<>]*)?>", text) is not None


def moment(ts: str) -> datetime | None:
    """Return the time of a message's ``ts``, in whole seconds: the rest is a number, no time."""
    seconds = ts.partition(".")[0]
    if not (seconds.isascii() and seconds.isdigit()) or len(seconds) > 11:
        return None
    return datetime.fromtimestamp(int(seconds), UTC)


def stamp(at: datetime) -> str:
    """Return a time as a ``ts`` that no message has."""
    return f"{int(at.timestamp()):010d}.000000"
