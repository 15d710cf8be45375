"""Texts: whom a comment speaks to, and which other threads it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from upright_github.keys import Place

MAX_RELATED: Final = 32
MAX_SCANNED_CHARS: Final = 65_536  # no body at GitHub is longer; a check's output is cut before

# What GitHub shows as code mentions nobody and links nothing.
_CODE: Final = re.compile(r"^(```|~~~).*?(?:^\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_NUMBER: Final = re.compile(
    r"(?<![\w/&#.-])(?P<repo>[\w-]{1,64}/[\w.-]{1,128})?#(?P<number>\d{1,9})(?![\w#])", re.ASCII
)
_URL: Final = re.compile(
    r"https?://(?P<host>[\w.:-]{1,255})/(?P<repo>[\w-]{1,64}/[\w.-]{1,128})"
    r"/(?:(?:issues|pull)/(?P<number>\d{1,9})|commit/(?P<sha>[0-9a-f]{40}))(?!\w)",
    re.ASCII | re.IGNORECASE,
)


def login_of(name: str) -> str:
    """Return a login as it is mentioned and compared: lower case, without ``[bot]``."""
    return name.strip().removeprefix("@").lower().removesuffix("[bot]")


def mentions(text: str, login: str) -> bool:
    """Tell whether a text speaks to a login: ``@login`` outside code, no part of a longer word."""
    if "@" not in text:  # most texts: looking for one character costs next to nothing
        return False
    wanted = re.escape(login_of(login))
    pattern = rf"(?<![\w@/.`+-])@{wanted}(?:\[bot\])?(?![\w/-])"
    return re.search(pattern, _prose(text), re.IGNORECASE) is not None


def related(text: str, place: Place, *, own: str) -> tuple[str, ...]:
    """Return the keys of other threads of this host that a text names, in order, at most 32."""
    keys: dict[str, None] = {}
    for key in _named(_prose(text), place):
        if key != own:
            keys[key] = None
        if len(keys) == MAX_RELATED:
            break
    return tuple(keys)


def _prose(text: str) -> str:
    """Return what is not code; bounded, so that no text holds up the door."""
    text = text[:MAX_SCANNED_CHARS]
    return _CODE.sub(" ", text) if "`" in text or "~~~" in text else text


def _named(text: str, place: Place) -> Iterator[str]:
    if "#" not in text and "://" not in text:
        return
    for hit in _URL.finditer(text):
        if hit["host"].lower() != place.host:
            continue
        if hit["number"]:
            yield place.elsewhere(hit["repo"], int(hit["number"]))
        elif place.same(hit["repo"]):
            yield place.sha(hit["sha"])
    for hit in _NUMBER.finditer(_URL.sub(" ", text)):
        yield place.elsewhere(hit["repo"] or place.repository, int(hit["number"]))
