"""Texts: what pages say, in each language that they speak; the words are data, in ``texts/``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
from aiohttp import web

FOLDER: Final = Path(__file__).parent / "texts"
LANGUAGES: Final[Mapping[str, str]] = {"en": "English", "zh": "中文"}
DEFAULT: Final = "en"
COOKIE: Final = "lang"
QUERY: Final = "lang"
_STEPS: Final = ((86_400, "age.days"), (3_600, "age.hours"), (60, "age.minutes"))
_MOST_PREFERENCES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """One language's texts by their keys."""

    language: str
    by_key: Mapping[str, str]

    def say(self, key: str, **values: object) -> str:
        """Return a text with its values in it; it is escaped where it is shown.

        Raises:
            KeyError: there is no such text.
        """
        return self.by_key[key].format(**values)

    def word(self, kind: str, value: object) -> str:
        """Return the word for a value of some kind; the value itself where there is none."""
        return self.by_key.get(f"{kind}.{value}", str(value).replace("_", " "))

    def age(self, at_ms: int | None, now_ms: int) -> str:
        """Say how long ago a time was."""
        if at_ms is None:
            return self.say("age.never")
        seconds = max(now_ms - at_ms, 0) // 1000
        for size, key in _STEPS:
            if seconds >= size:
                return self.say(key, n=seconds // size)
        return self.say("age.seconds", n=seconds)


def load() -> Mapping[str, Texts]:
    """Read all languages from their files. This blocks."""
    return {
        language: Texts(
            language=language, by_key=orjson.loads((FOLDER / f"{language}.json").read_bytes())
        )
        for language in LANGUAGES
    }


def language_of(request: web.Request) -> str:
    """Choose a language: the one that was asked for, then the cookie's, then the browser's."""
    for wanted in (request.query.get(QUERY), request.cookies.get(COOKIE)):
        if wanted in LANGUAGES:
            return str(wanted)
    return _preferred(request.headers.get("Accept-Language", ""))


def _preferred(header: str) -> str:
    """Return the language that a browser likes best of ours (RFC 9110, 12.5.4)."""
    best, chosen = 0.0, DEFAULT
    for part in header.split(",")[:_MOST_PREFERENCES]:
        tag, _, weight = part.strip().partition(";q=")
        language = tag.strip().lower().partition("-")[0]
        quality = _quality(weight)
        if language in LANGUAGES and quality > best:
            best, chosen = quality, language
    return chosen


def _quality(text: str) -> float:
    if not text:
        return 1.0
    whole, _, rest = text.strip().partition(".")
    is_number = whole in {"0", "1"} and (not rest or (rest.isascii() and rest.isdigit()))
    return min(float(text), 1.0) if is_number and len(text) <= 5 else 0.0
